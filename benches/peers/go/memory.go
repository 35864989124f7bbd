package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// peakMemory returns the peak resident memory since the start or the last resetPeak, in bytes.
func peakMemory() float64 { return field("/proc/self/status", "VmHWM:") }

// anonymousMemory returns the resident anonymous memory, in bytes.
func anonymousMemory() float64 { return field("/proc/self/smaps_rollup", "Anonymous:") }

// residentMemory returns the resident memory, in bytes.
func residentMemory() float64 { return field("/proc/self/status", "VmRSS:") }

// resetPeak resets the peak to the current resident memory. If that is not allowed, the peak remains an upper bound.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

func field(file, name string) float64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		rest, found := strings.CutPrefix(line, name)
		if !found {
			continue
		}
		kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
		if err != nil {
			return 0
		}
		return kilobytes * 1024
	}
	return 0
}

// cpuSeconds returns the processor time of all threads so far.
func cpuSeconds() float64 {
	var time unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &time); err != nil {
		return 0
	}
	return float64(time.Nano()) / 1e9
}
