package client

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// list lists in pages of two.
func list(t *testing.T, s *server) (names string, version int, err error) {
	t.Helper()
	all, err := s.client().List(t.Context(), kube.Newest)
	var words []string
	for _, o := range all.Objects {
		words = append(words, o.Name)
	}
	if s.open > 0 {
		t.Fatalf("List returned, and %d bodies of answers are still open. Each holds a connection: close it.", s.open)
	}
	return strings.Join(words, " "), all.Version, err
}

// watch watches from version 12 until the watch ends, and returns the events and the error.
func watch(t *testing.T, s *server) (told string, err error) {
	t.Helper()
	w, err := s.client().Watch(t.Context(), 12, time.Minute)
	if err != nil {
		t.Fatalf("The server answered 200, and Watch returned the error %v.", err)
	}
	var all []string
	for len(all) < 10 {
		e, failed := w.Next()
		if err = failed; err != nil {
			break
		}
		all = append(all, e.Type+" "+e.Object.String())
	}
	w.Close()
	if s.open > 0 {
		t.Fatal("Close returned, and the body of the answer is still open. It holds a connection: close it.")
	}
	return strings.Join(all, ", "), err
}

func Test1OnePage(t *testing.T) {
	names, version, err := list(t, newServer("web-1 web-2"))
	if err != nil || names != "web-1 web-2" || version != 12 {
		t.Fatalf("The server has web-1 and web-2 at version 12. List returned [%s] at %d, and the error %v.\n"+
			"The version is that of the list, in its metadata, and not that of an object.", names, version, err)
	}
}

func Test2ARefusalIsAnError(t *testing.T) {
	s := newServer("web-1")
	s.refuse = true
	names, _, err := list(t, s)
	if err == nil {
		t.Fatalf("The server answered 403, and List returned [%s] without an error. Whoever calls it believes that "+
			"nothing is there.", names)
	}
	if !strings.Contains(err.Error(), "pods is forbidden") {
		t.Fatalf("The server said \"pods is forbidden\". The error of List is %q; a person has to read what the "+
			"server said.", err)
	}
}

func Test3Pages(t *testing.T) {
	s := newServer("web-1 web-2 web-3 web-4 web-5")
	names, version, err := list(t, s)
	if err != nil || names != "web-1 web-2 web-3 web-4 web-5" || version != 12 {
		t.Fatalf("There are five Pods, and pages of two. List returned [%s] at %d, and the error %v.", names, version,
			err)
	}
	if s.pages != 3 || s.largest != 2 {
		t.Fatalf("List made %d requests, with limits up to %d. Pages of two make three requests: each has the limit.",
			s.pages, s.largest)
	}
}

func Test4HowOldAListMayBe(t *testing.T) {
	for version, want := range map[int]string{
		kube.Newest: "limit=2", kube.AnyAge: "limit=2&resourceVersion=0",
		9: "limit=2&resourceVersion=9&resourceVersionMatch=NotOlderThan",
	} {
		s := newServer("web-1 web-2 web-3")
		_, err := s.client().List(t.Context(), version)
		if got := s.listed[0].Encode(); err != nil || got != want {
			t.Fatalf("List was called with version %d. Its first request was\n  %s\nwant\n  %s\nThe error is %v.",
				version, got, want, err)
		}
	}
}

func Test5ChangesBetweenPages(t *testing.T) {
	s := newServer("web-1 web-2 web-3 web-4 web-5")
	s.after = func(page int) {
		if page == 1 {
			s.change("web-1 web-2 web-4 web-5 web-6")
		}
	}
	names, version, err := list(t, s)
	if err != nil || names != "web-1 web-2 web-3 web-4 web-5" || version != 12 {
		t.Fatalf("web-3 was deleted and web-6 created after the first page. List returned [%s] at %d, and the error "+
			"%v.\nIt should return the five of version 12, with the version 12: a watch from there tells the rest.",
			names, version, err)
	}
}

func Test6TheServerForgetsBetweenPages(t *testing.T) {
	s := newServer("web-1 web-2 web-3")
	s.after = func(int) {
		s.change("web-1 web-2 web-3")
		s.forgotten = s.version
	}
	names, version, err := list(t, s)
	if !errors.Is(err, kube.ErrGone) {
		t.Fatalf("The server answered 410 to the second page. The error of List is %v, it should be ErrGone: whoever "+
			"calls it must know that a new list will do.", err)
	}
	if names != "" || version != 0 {
		t.Fatalf("List failed, and returned [%s] at %d. A part of a list is no list: the Pods that are missing in it "+
			"would be taken for deleted.", names, version)
	}
}

func Test7Changes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("")
		stream, server := io.Pipe()
		s.stream = stream
		var told []string
		ended := make(chan error, 1)
		go func() {
			w, err := s.client().Watch(t.Context(), 12, time.Minute)
			for err == nil {
				var e kube.Event
				if e, err = w.Next(); err == nil {
					told = append(told, e.Type)
				}
			}
			ended <- err
		}()
		for n, kind := range []string{kube.Added, kube.Modified, kube.Deleted} {
			synctest.Wait()
			select {
			case err := <-ended:
				t.Fatalf("The stream is open, and Next has returned the error %v.", err)
			default:
			}
			if _, err := io.WriteString(server, frame(kind, "web-1", 13+n)); err != nil {
				t.Fatalf("Next does not read: %v.", err)
			}
			synctest.Wait()
			if len(told) != n+1 {
				server.Close()
				t.Fatalf("The server has sent %d events, and Next has returned %d. The stream is still open; a "+
					"change must be told when it arrives.", n+1, len(told))
			}
		}
		server.Close() // in good order: the next read returns io.EOF
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Fatalf("The server ended the watch in good order. Next returned the error %v, it should be %v.", err,
				io.EOF)
		}
		want := map[string][]string{
			"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {"12"}, "timeoutSeconds": {"60"},
		}
		if !maps.EqualFunc(s.watched, want, func(a, b []string) bool { return a[0] == b[0] }) {
			t.Fatalf("The watch should begin at version 12 and end after a minute. It asked for %s.\n"+
				"What happens between a list and the watch is lost, and without bookmarks the position of a quiet "+
				"watch is soon forgotten.", s.watched.Encode())
		}
	})
}

func Test8Bookmarks(t *testing.T) {
	s := newServer("")
	s.stream = strings.NewReader(frame(kube.Added, "web-1", 13) + frame(kube.Bookmark, "", 500))
	told, err := watch(t, s)
	if told != "ADDED web-1@13, BOOKMARK @500" || !errors.Is(err, io.EOF) {
		t.Fatalf("There was one change and one bookmark of version 500. Next returned [%s] and the error %v.\n"+
			"A bookmark tells how far the watch is. The reflector needs it.", told, err)
	}
}

func Test9GoneInAWatch(t *testing.T) {
	s := newServer("")
	s.stream = strings.NewReader(`{"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}`)
	told, err := watch(t, s)
	if told != "" {
		t.Fatalf("The only line of the watch was an error. What was told is [%s]: it is no change.", told)
	}
	if !errors.Is(err, kube.ErrGone) {
		t.Fatalf("The status was 200, and the first line an ERROR with code 410. Next returned the error %v; it "+
			"should be ErrGone.\nWithout that error the client asks from the same version for ever.", err)
	}
}

func Test10TheConnectionBreaks(t *testing.T) {
	s := newServer("")
	whole := frame(kube.Added, "web-1", 13) + frame(kube.Added, "web-2", 14)
	s.stream = strings.NewReader(whole[:len(whole)-20])
	told, err := watch(t, s)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("The connection broke in the middle of an event. The error of Next is %v, it should be %v: this is "+
			"not the good order in which a watch ends.", err, io.ErrUnexpectedEOF)
	}
	if told != "ADDED web-1@13" {
		t.Fatalf("One event arrived, and a part of a second. What was told is [%s]. It should be [ADDED web-1@13]: "+
			"the next watch begins there and tells web-2.", told)
	}
}

func Test11AListBreaksOff(t *testing.T) {
	s := newServer("web-1 web-2")
	s.cut = true
	if names, _, err := list(t, s); err == nil {
		t.Fatalf("The connection broke in the middle of a page. List returned [%s] without an error. Whoever calls it "+
			"believes that nothing else is there.", names)
	}
}

func Test12TheContextEnds(t *testing.T) {
	s := newServer("web-1")
	s.stream = strings.NewReader("")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := s.client().Watch(ctx, 12, time.Minute)
	if err != nil || s.watching.Err() != nil {
		t.Fatalf("Watch has returned the error %v, and the context of its request has the error %v. The stream breaks "+
			"off when that context ends.", err, s.watching.Err())
	}
	defer w.Close()
	cancel()
	if s.watching.Err() == nil {
		t.Fatal("The context of Watch ended, and that of its request did not. Next would wait for ever, and the " +
			"program could not end.")
	}
	if _, err := s.client().List(ctx, kube.Newest); !errors.Is(err, context.Canceled) {
		t.Fatalf("The context had ended before List was called. List returned the error %v. Give ctx to the request.",
			err)
	}
}
