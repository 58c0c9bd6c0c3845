package client

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// list lists in pages of two.
func list(t *testing.T, s *server) (names, version string, err error) {
	t.Helper()
	objects, version, err := s.client().List(t.Context(), 2)
	var all []string
	for _, o := range objects {
		all = append(all, o.Metadata.Name)
	}
	if s.open > 0 {
		t.Fatalf("List returned, and %d bodies of answers are still open. Each holds a connection: close it.", s.open)
	}
	return strings.Join(all, " "), version, err
}

// watch watches from version 12 and returns the events.
func watch(t *testing.T, s *server) (told, position string, err error) {
	t.Helper()
	var all []string
	position, err = s.client().Watch(t.Context(), "12", func(e Event) {
		all = append(all, e.Type+" "+e.Object.Metadata.Name)
	})
	if s.open > 0 {
		t.Fatal("Watch returned, and the body of the answer is still open. It holds a connection: close it.")
	}
	return strings.Join(all, ", "), position, err
}

func Test1OnePage(t *testing.T) {
	names, version, err := list(t, newServer("web-1 web-2"))
	if err != nil || names != "web-1 web-2" || version != "12" {
		t.Fatalf("The server has web-1 and web-2 at version 12. List returned [%s] at %q, and the error %v.\n"+
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
	if err != nil || names != "web-1 web-2 web-3 web-4 web-5" || version != "12" {
		t.Fatalf("There are five Pods, and pages of two. List returned [%s] at %q, and the error %v.", names, version,
			err)
	}
	if s.pages != 3 || s.largest != 2 {
		t.Fatalf("List made %d requests, with limits up to %d. Pages of two make three requests: each has the limit.",
			s.pages, s.largest)
	}
}

func Test4ChangesBetweenPages(t *testing.T) {
	s := newServer("web-1 web-2 web-3 web-4 web-5")
	s.after = func(page int) {
		if page == 1 {
			s.change("web-1 web-2 web-4 web-5 web-6")
		}
	}
	names, version, err := list(t, s)
	if err != nil || names != "web-1 web-2 web-3 web-4 web-5" || version != "12" {
		t.Fatalf("web-3 was deleted and web-6 created after the first page. List returned [%s] at %q, and the error "+
			"%v.\nIt should return the five of version 12, with the version 12: a watch from there tells the rest.",
			names, version, err)
	}
}

func Test5TheServerForgetsBetweenPages(t *testing.T) {
	s := newServer("web-1 web-2 web-3")
	s.after = func(int) {
		s.change("web-1 web-2 web-3")
		s.forgotten = s.version
	}
	names, version, err := list(t, s)
	if !errors.Is(err, ErrGone) {
		t.Fatalf("The server answered 410 to the second page. The error of List is %v, it should be ErrGone: whoever "+
			"calls it must know that a new list will do.", err)
	}
	if names != "" || version != "" {
		t.Fatalf("List failed, and returned [%s] at %q. A part of a list is no list: the Pods that are missing in it "+
			"would be taken for deleted.", names, version)
	}
}

func Test6Changes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("")
		stream, server := io.Pipe()
		s.stream = stream
		var told []string
		type result struct {
			position string
			err      error
		}
		ended := make(chan result, 1)
		go func() {
			position, err := s.client().Watch(t.Context(), "12", func(e Event) { told = append(told, e.Type) })
			ended <- result{position, err}
		}()
		for n, kind := range []string{"ADDED", "MODIFIED", "DELETED"} {
			synctest.Wait()
			select {
			case r := <-ended:
				t.Fatalf("The stream is open, and Watch has returned the position %q and the error %v.", r.position,
					r.err)
			default:
			}
			if _, err := io.WriteString(server, frame(kind, "web-1", 13+n)); err != nil {
				t.Fatalf("Watch does not read: %v.", err)
			}
			synctest.Wait()
			if len(told) != n+1 {
				server.Close()
				t.Fatalf("The server has sent %d events, and each was called for %d. The stream is still open; a "+
					"change must be told when it arrives.", n+1, len(told))
			}
		}
		if got := s.watched.Get("resourceVersion"); got != "12" {
			server.Close()
			t.Fatalf("The watch should begin at version 12, and asked for %q. What happens between a list and the "+
				"watch is lost.", got)
		}
		server.Close() // in good order: the next read returns io.EOF
		if r := <-ended; r.err != nil || r.position != "15" {
			t.Fatalf("The server ended the watch in good order after version 15. Watch returned the position %q and "+
				"the error %v.", r.position, r.err)
		}
	})
}

func Test7Bookmarks(t *testing.T) {
	s := newServer("")
	s.stream = strings.NewReader(frame("ADDED", "web-1", 13) + frame("BOOKMARK", "", 500))
	told, position, err := watch(t, s)
	if s.watched.Get("allowWatchBookmarks") != "true" {
		t.Fatal("Watch did not ask for bookmarks. Without them the position of a quiet watch is soon forgotten.")
	}
	if told != "ADDED web-1" {
		t.Fatalf("There was one change and one bookmark. What was told is [%s]: a bookmark is no change.", told)
	}
	if position != "500" || err != nil {
		t.Fatalf("The last line was a bookmark of version 500. Watch returned the position %q and the error %v.",
			position, err)
	}
}

func Test8GoneInAWatch(t *testing.T) {
	s := newServer("")
	s.stream = strings.NewReader(`{"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}`)
	told, position, err := watch(t, s)
	if told != "" {
		t.Fatalf("The only line of the watch was an error. What was told is [%s]: it is no change.", told)
	}
	if !errors.Is(err, ErrGone) || position != "12" {
		t.Fatalf("The status was 200, and the first line an ERROR with code 410. Watch returned the position %q and "+
			"the error %v; it should be 12 and ErrGone.\nWithout that error the client asks from the same version for "+
			"ever.", position, err)
	}
}

func Test9TheConnectionBreaks(t *testing.T) {
	s := newServer("")
	whole := frame("ADDED", "web-1", 13) + frame("ADDED", "web-2", 14)
	s.stream = strings.NewReader(whole[:len(whole)-20])
	told, position, err := watch(t, s)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("The connection broke in the middle of an event. The error of Watch is %v, it should be %v: this is "+
			"not the good order in which a watch ends.", err, io.ErrUnexpectedEOF)
	}
	if told != "ADDED web-1" || position != "13" {
		t.Fatalf("One event arrived, and a part of a second. What was told is [%s], and the position is %q. It should "+
			"be [ADDED web-1] and 13: the next watch begins there and tells web-2.", told, position)
	}
}
