package reflector

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

func Test1AListAndThenAWatch(t *testing.T) {
	s := &server{watches: []answer{{frames: []frame{
		changed(time.Second, "ADDED", "web-2", 12), changed(time.Second, "DELETED", "web-1", 15),
	}}}}
	s.run(t, 30*time.Second, options())
	s.asked(t, "A list of any age is enough at the start. The watch begins at the version of the list.",
		"0s list any", "0s watch 10")
	if got, want := strings.Join(s.told, ", "), "list of 10, ADDED web-2 12, DELETED web-1 15"; got != want {
		t.Fatalf("The cache was told: %s.\nIt should be told: %s.", got, want)
	}
}

func Test2EveryWatchEnds(t *testing.T) {
	s := &server{watches: []answer{{frames: []frame{changed(time.Second, "ADDED", "web-2", 12)}}}}
	s.run(t, 150*time.Second, options())
	s.asked(t, "The server ends a watch after a minute. That is no failure: the next one begins at the position, and "+
		"no list is needed.", "0s list any", "0s watch 10", "1m0s watch 12", "2m0s watch 12")
}

func Test3BookmarksMoveThePosition(t *testing.T) {
	s := &server{watches: []answer{{frames: []frame{changed(30*time.Second, "BOOKMARK", "", 500)}}}}
	s.run(t, 90*time.Second, options())
	s.asked(t, "A bookmark says that everything up to its version has been told.",
		"0s list any", "0s watch 10", "1m0s watch 500")
	if got := strings.Join(s.told, ", "); got != "list of 10" {
		t.Fatalf("The cache was told: %s. A bookmark is no change.", got)
	}
}

func Test4TheConnectionBreaks(t *testing.T) {
	s := &server{watches: []answer{{frames: []frame{
		changed(time.Second, "ADDED", "web-2", 12), ended(9*time.Second, errBroken),
	}}}}
	s.run(t, 30*time.Second, options())
	s.asked(t, "The position is still good. So there is a pause, and no list: when a server restarts, all its clients "+
		"come back at one moment, and a list from each is the last thing that it needs.",
		"0s list any", "0s watch 10", "11s watch 12")
}

func Test5PausesGrow(t *testing.T) {
	s := &server{watches: []answer{
		{err: errBroken},
		{err: errBroken},
		{err: errBroken},
		{err: errBroken},
		{err: errBroken},
		{frames: []frame{ended(5*time.Second, errBroken)}},
		{err: errBroken},
	}}
	s.run(t, 50*time.Second, options())
	s.asked(t, "Each pause is twice the one before: 1, 2, 4, 8 seconds, and no longer than 8. A watch that lasts "+
		"begins them anew.", "0s list any", "0s watch 10", "1s watch 10", "3s watch 10", "7s watch 10", "15s watch 10",
		"23s watch 10", "29s watch 10", "31s watch 10")

	s = &server{watches: []answer{{err: errBroken}, {err: errBroken}, {frames: []frame{
		changed(0, "BOOKMARK", "", 500), ended(0, errBroken),
	}}}}
	s.run(t, 30*time.Second, options())
	s.asked(t, "The last of three watches broke after a bookmark. That is an event, too, and begins the pauses anew.",
		"0s list any", "0s watch 10", "1s watch 10", "3s watch 10", "4s watch 500")

	o := options()
	o.Rand = func() float64 { return 0.5 }
	s = &server{watches: []answer{{err: errBroken}, {err: errBroken}}}
	s.run(t, 10*time.Second, o)
	s.asked(t, "Rand returns 0.5 here, so pauses are one and a half times as long. Otherwise all the clients of a "+
		"server come back at one moment.", "0s list any", "0s watch 10", "1.5s watch 10", "4.5s watch 10")
}

func Test6TheHistoryIsGone(t *testing.T) {
	s := &server{watches: []answer{
		{frames: []frame{changed(time.Second, "ADDED", "web-2", 12), ended(time.Second, kube.ErrGone)}},
	}, lists: []answer{{list: kube.List{Version: 10}}, {list: kube.List{Version: 99}}}}
	s.run(t, 30*time.Second, options())
	s.asked(t, "Only a list tells what was missed. It may not be older than the position, or the cache goes back in "+
		"time.",
		"0s list any", "0s watch 10", "2s list 12", "2s watch 99")
}

func Test7TheServerIsBehind(t *testing.T) {
	ahead, gone := kube.ErrAhead, kube.ErrGone
	for _, fail := range [][2]error{{ahead, errBroken}, {gone, errBroken}, {ahead, ahead}} {
		s := &server{watches: []answer{{err: gone}, {err: gone}}, lists: []answer{
			{list: kube.List{Version: 40}}, {err: fail[0]}, {err: fail[1]}, {list: kube.List{Version: 20}},
		}}
		s.run(t, 30*time.Second, options())
		s.asked(t, "The server has not got to version 40, or not any more. Perhaps it was restored from a backup, "+
			"and never will. The newest list does not depend on a version. If that fails, whatever the error is, "+
			"there is a pause, and the next one is the newest, too. After it, position 20 is good enough.",
			"0s list any", "0s watch 40", "0s list 40", "0s list newest", "1s list newest", "1s watch 20", "1s list 20")
	}
}

func Test8TheServerIsBusy(t *testing.T) {
	s := &server{watches: []answer{
		{frames: []frame{ended(5*time.Second, &kube.BusyError{RetryAfter: 7 * time.Second})}},
		{err: &kube.BusyError{}},
	}}
	s.run(t, 30*time.Second, options())
	s.asked(t, "The server wants to be left alone for 7 seconds. If it does not say how long, the usual pause is "+
		"right. The position is still good.", "0s list any", "0s watch 10", "12s watch 10", "14s watch 10")

	s = &server{lists: []answer{{err: &kube.BusyError{RetryAfter: 7 * time.Second}}}}
	s.run(t, 30*time.Second, options())
	s.asked(t, "The server wants to be left alone for 7 seconds. A list waits as a watch does.",
		"0s list any", "7s list any", "7s watch 10")
}

func Test9NothingComesAnyMore(t *testing.T) {
	s := &server{watches: []answer{{frames: []frame{changed(30*time.Second, "ADDED", "web-2", 12)}, silent: true}}}
	s.run(t, 100*time.Second, options())
	s.asked(t, "The watch should have ended after a minute. Ten seconds later the connection is given up. A watch "+
		"that is dead looks like one that is quiet, so nothing but the time tells.",
		"0s list any", "0s watch 10", "1m10s watch 12")
}

func Test10TheServerHangsUpAtOnce(t *testing.T) {
	s := &server{}
	for range 20 {
		s.watches = append(s.watches, answer{frames: []frame{ended(0, io.EOF)}})
	}
	s.run(t, 16*time.Second, options())
	s.asked(t, "The server ends each watch at once, in good order. Without pauses this is a loop that keeps it busy.",
		"0s list any", "0s watch 10", "1s watch 10", "3s watch 10", "7s watch 10", "15s watch 10")
}

func Test11TheListFails(t *testing.T) {
	forbidden := errors.New("403: pods is forbidden")
	s := &server{lists: []answer{{err: forbidden}, {err: forbidden}}, watches: []answer{{err: errBroken}}}
	s.run(t, 30*time.Second, options())
	s.asked(t, "Without a list there is nothing to watch from. It is asked for again, after pauses that grow. A list "+
		"that succeeds does not end them, since the server may still break every watch.",
		"0s list any", "1s list any", "3s list any", "3s watch 10", "7s watch 10")
	if got := strings.Join(s.told, ", "); got != "list of 10" {
		t.Fatalf("The cache was told: %s. A list that failed is no empty list.", got)
	}
}

func Test12ItStops(t *testing.T) {
	for _, s := range []*server{
		{watches: []answer{{silent: true}}},
		{watches: []answer{{err: errBroken}, {err: errBroken}, {err: errBroken}, {err: errBroken}}},
		{lists: []answer{{err: errBroken}, {err: errBroken}, {err: errBroken}, {err: errBroken}}},
		{watches: []answer{{err: &kube.BusyError{RetryAfter: time.Hour}}}},
	} {
		s.run(t, 5*time.Second, options())
		n := len(s.log)
		if n < 2 || n > 6 {
			t.Fatalf("The requests were:\n  %s", strings.Join(s.log, "\n  "))
		}
	}
}
