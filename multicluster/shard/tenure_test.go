package shard

import (
	"errors"
	"testing"

	"github.com/flyball-dev/flyball/manager/leader"
)

// Check reads the clock itself, because a process that was stopped and continues may call it before any timer has run.
func TestCheckDoesNotWaitForATimer(t *testing.T) {
	var over error
	o := &Owner{}
	tenure := o.newTenure(&claim{lease: "fleet-cluster-eu"}, &session{id: "a#1", check: func() error { return over }})
	if err := tenure.Check(); err != nil {
		t.Errorf("while the session is held: %v", err)
	}
	over = leader.ErrLost
	if err := tenure.Check(); !errors.Is(err, leader.ErrLost) {
		t.Errorf("when it may have expired, before any timer has run: %v", err)
	}
	over = nil
	tenure.lose(errors.New("its lease was deleted"))
	if err := tenure.Check(); !errors.Is(err, leader.ErrLost) {
		t.Errorf("lost: %v", err)
	}
}
