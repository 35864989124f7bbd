package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// processes is the processes of a server: of the real one, etcd and kube-apiserver.
type processes []int

// cpu returns the processor time of all threads of the processes so far, in seconds.
func (p processes) cpu() (seconds float64) {
	for _, id := range p {
		// The clock of another process, as clock_getcpuclockid(3) returns it: finer than the ticks of /proc.
		var time unix.Timespec
		if err := unix.ClockGettime(int32(^id)<<3|2, &time); err == nil {
			seconds += float64(time.Nano()) / 1e9
		}
	}
	return seconds
}

// resident returns the resident memory of the processes, in bytes.
func (p processes) resident() (bytes float64) {
	for _, id := range p {
		bytes += field(fmt.Sprintf("/proc/%d/status", id), "VmRSS:")
	}
	return bytes
}
