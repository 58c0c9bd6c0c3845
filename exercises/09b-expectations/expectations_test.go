package expectations

import (
	"testing"
	"testing/synctest"
	"time"
)

// created returns expectations for three pods, which the server has created at the versions 11, 12 and 13.
func created() *Expectations {
	e := &Expectations{}
	e.Expect(3)
	for version := 11; version <= 13; version++ {
		e.Created(version)
	}
	return e
}

func Test1LateEventsAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := created()
		time.Sleep(6 * time.Minute)
		if e.Satisfied(10) {
			t.Fatal("Three pods were created, at the versions 11 to 13. Six minutes later the cache is still at " +
				"version 10, and the owner may be reconciled: it will create three more.\n" +
				"That the time is up does not mean that the cache is up to date.")
		}
	})
}

func Test2TheEventsAreEnough(t *testing.T) {
	e := created()
	for version := 11; version <= 13; version++ {
		if e.Satisfied(version - 1) {
			t.Fatalf("The event of the pod with version %d has not come yet, and the owner may be reconciled.", version)
		}
		e.Seen()
	}
	if !e.Satisfied(13) {
		t.Fatal("All three events have come, and the owner may not be reconciled.")
	}
}

func Test3APodThatNobodySawIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := created()
		e.Seen()
		e.Seen()
		// The third pod was deleted while the watch was cut. A new list brought the cache to version 20.
		if !e.Satisfied(20) {
			t.Fatal("The cache is at version 20, and the last create was at 13. The cache has all that was created, " +
				"or knows that it is gone. The owner waits for an event that never comes.")
		}
	})
}

func Test4ACacheInTheMiddleIsNotEnough(t *testing.T) {
	e := created()
	e.Seen()
	if e.Satisfied(12) {
		t.Fatal("The cache is at version 12, and the last pod was created at 13. The owner would create one too many.")
	}
}

func Test5NoTimeIsLongEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := created()
		time.Sleep(30 * 24 * time.Hour)
		if e.Satisfied(10) {
			t.Fatal("The watch has been stuck for a month, and the owner may be reconciled. No time is long enough: " +
				"only the cache knows what it has seen.")
		}
	})
}

func Test6ACacheAtTheLastCreateIsEnough(t *testing.T) {
	if !created().Satisfied(13) {
		t.Fatal("The cache is at version 13, and the last pod was created at 13. The owner may not be reconciled, " +
			"although the cache has every create.")
	}
}

func Test7AnswersMayComeInAnyOrder(t *testing.T) {
	e := &Expectations{}
	e.Expect(3)
	for _, version := range []int{13, 11, 12} { // The creates were sent at the same time.
		e.Created(version)
	}
	if e.Satisfied(12) {
		t.Fatal("The creates got the versions 13, 11 and 12, in this order. The cache is at 12 and lacks one.")
	}
}
