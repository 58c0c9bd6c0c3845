package turns

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

// Usage returns the processor time that a process has used, in steps of ten milliseconds, and the most memory that it
// ever had resident, in bytes. It reads /proc.
func Usage(pid int) (cpu time.Duration, peak uint64, err error) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // The name before it may have spaces.
	var user, system time.Duration
	if _, err := fmt.Sscan(string(bytes.Join(fields[11:13], []byte(" "))), &user, &system); err != nil {
		return 0, 0, fmt.Errorf("read %sstat: %w", dir, err)
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return 0, 0, err
	}
	_, after, _ := bytes.Cut(status, []byte("VmHWM:"))
	if _, err := fmt.Sscan(string(after), &peak); err != nil {
		return 0, 0, fmt.Errorf("read VmHWM in %sstatus: %w", dir, err)
	}
	return (user + system) * 10 * time.Millisecond, peak << 10, nil
}
