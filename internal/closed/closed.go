// Package closed has a test for a closed channel.
package closed

// Is reports whether a channel is closed on which nothing is ever sent.
func Is(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
