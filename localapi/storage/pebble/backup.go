package pebble

import (
	"context"
	"fmt"

	engine "github.com/cockroachdb/pebble/v2"
)

// Backup copies the store, while it is in use, to the directory to, which must not exist. The copy is the store as of
// one revision, which is not older than the current one when Backup was called. [Open] opens it. If both are on one
// file system, the copy shares files that never change, and costs little.
func (s *Store) Backup(_ context.Context, to string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.disk.failure(); err != nil {
		return fmt.Errorf("back up to %s: %w", to, err) // files that the engine believes to be on disk may be in memory
	}
	if err := s.db.Checkpoint(to, engine.WithFlushedWAL()); err != nil {
		return fmt.Errorf("back up to %s: %w", to, err)
	}
	return nil
}
