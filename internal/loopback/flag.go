package loopback

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Check validates the address that a flag gives for a page on this machine.
func Check(flag, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if !Host(host) {
		return fmt.Errorf("%s %s: it must be a loopback address", flag, addr)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%s %s: the port must be between 0 and 65535", flag, addr)
	}
	return nil
}

// InUse adds what to do to the error of a manager whose page has an address that is in use.
func InUse(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w; --page=ADDRESS chooses another one", err)
	}
	return err
}
