package ahead

import (
	"slices"
	"strconv"
	"testing"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// server is an API server that may be behind.
type server struct {
	version int
	// failNewest is the error of a request for the newest list, and fail the error of any other request.
	fail, failNewest error
	asked            []string
}

func (s *server) List(version int) ([]string, int, error) {
	asked := strconv.Itoa(version)
	if version == kube.Newest {
		asked = "newest"
	}
	s.asked = append(s.asked, asked)
	if version == kube.Newest && s.failNewest != nil {
		return nil, 0, s.failNewest
	}
	if version != kube.Newest && s.fail != nil {
		return nil, 0, s.fail
	}
	return []string{"web-1", "web-2"}, s.version, nil
}

// The errors of servers that are behind.
func tooLarge() error {
	return &StatusError{504, "Timeout", "Too large resource version: 40, current: " +
		"12", []string{"ResourceVersionTooLarge"}}
}

func tooLargeOld() error {
	return &StatusError{504, "Timeout", "Too large resource version: 40, current: 12", nil}
}

// at40 returns a Lister that has seen version 40 of a server.
func at40(t *testing.T) (*Lister, *server) {
	t.Helper()
	s := &server{version: 40}
	l := New(s)
	if _, err := l.List(); err != nil {
		t.Fatalf("The first List returned %v.", err)
	}
	s.asked = nil
	return l, s
}

// days calls List a hundred times, or until it succeeds.
func days(l *Lister) (calls int, err error) {
	for calls < 100 {
		calls++
		if _, err = l.List(); err == nil {
			return calls, nil
		}
	}
	return calls, err
}

func Test1NothingOlderThanThePosition(t *testing.T) {
	l, s := at40(t)
	if _, err := l.List(); err != nil || !slices.Equal(s.asked, []string{"40"}) {
		t.Fatalf("The position is 40. List asked for %v and returned the error %v. It should ask for a list that is "+
			"not older than 40.", s.asked, err)
	}
}

func Test2TheServerIsBehind(t *testing.T) {
	l, s := at40(t)
	s.version, s.fail = 12, tooLarge()
	calls, err := days(l)
	if err != nil {
		t.Fatalf("The server was restored from a backup, and is at version 12. List was called %d times. The last "+
			"error was: %v.\nIt asked for %s each time. The server will not get there for days, and until then the "+
			"program sees nothing.", calls, err, s.asked[len(s.asked)-1])
	}
	if calls > 1 || !slices.Equal(s.asked, []string{"40", "newest"}) {
		t.Fatalf("The server is at version 12. List was called %d times and asked for %v. It should ask for 40, and "+
			"then at once for the newest.", calls, s.asked)
	}
}

func Test3AnOldServerIsBehind(t *testing.T) {
	l, s := at40(t)
	s.version, s.fail = 12, tooLargeOld()
	calls, err := days(l)
	if err != nil {
		t.Fatalf("The server is an old one, and says that it is behind without a cause. List was called %d times. "+
			"The last error was: %v.\nOnly the message tells.", calls, err)
	}
}

func Test4AnyOtherTimeout(t *testing.T) {
	l, s := at40(t)
	s.fail = &StatusError{504, "Timeout", "the server did not answer in time", nil}
	if _, err := days(l); err == nil || slices.Contains(s.asked, "newest") {
		t.Fatalf("The server is slow, and not behind. List asked for %v and returned the error %v.\nThe newest list "+
			"costs such a server the most. The same request again, a while later, is right.", s.asked, err)
	}
}

func Test5TheHistoryIsGone(t *testing.T) {
	l, s := at40(t)
	s.version, s.fail = 90, &StatusError{410, "Expired", "too old resource version", nil}
	if calls, err := days(l); err != nil || calls > 1 {
		t.Fatalf("The server answered 410. List was called %d times, asked for %v, and returned the error %v.", calls,
			s.asked, err)
	}
}

func Test6TheNewestListFailsOnce(t *testing.T) {
	l, s := at40(t)
	s.version, s.fail, s.failNewest = 12, tooLarge(), &StatusError{503, "ServiceUnavailable", "no server", nil}
	if _, err := l.List(); err == nil {
		t.Fatal("The newest list failed, and List returned no error.")
	}
	s.failNewest, s.asked = nil, nil
	if calls, err := days(l); err != nil || calls > 1 || !slices.Equal(s.asked, []string{"newest"}) {
		t.Fatalf("The newest list failed, and works again. List was called %d times, asked for %v, and returned the "+
			"error %v.", calls, s.asked, err)
	}
}

func Test7ThePositionIsTheNewOne(t *testing.T) {
	l, s := at40(t)
	s.version, s.fail = 12, tooLarge()
	if _, err := days(l); err != nil {
		t.Fatalf("List returned %v.", err)
	}
	s.fail, s.asked = nil, nil
	if _, err := l.List(); err != nil || !slices.Equal(s.asked, []string{"12"}) {
		t.Fatalf("The server is at version 12, and so is the program by now. The next List asked for %v and returned "+
			"the error %v. It should ask for a list not older than 12: the newest costs the server more.", s.asked, err)
	}
}
