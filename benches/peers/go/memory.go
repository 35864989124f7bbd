package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// peakMemory is the most that was ever resident since the start or the last resetPeak, in bytes.
func peakMemory() float64 { return field("/proc/self/status", "VmHWM:") }

// anonymousMemory is what is resident of private anonymous memory now, in bytes.
func anonymousMemory() float64 { return field("/proc/self/smaps_rollup", "Anonymous:") }

// residentMemory is everything that is resident now, in bytes.
func residentMemory() float64 { return field("/proc/self/status", "VmRSS:") }

// resetPeak forgets the peak so far. Where that is not allowed the peak stays an upper bound.
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

// cpuSeconds is the processor time of the whole process so far.
func cpuSeconds() float64 {
	var time unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &time); err != nil {
		return 0
	}
	return float64(time.Nano()) / 1e9
}
