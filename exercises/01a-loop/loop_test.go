package loop

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// check calls Reconcile, which must succeed, and compares the Pods.
func check(t *testing.T, s *server, want, why string) {
	t.Helper()
	if err := Reconcile(s, "web"); err != nil {
		t.Fatalf("Reconcile returned the error %q. It should succeed here.\n%s", err, why)
	}
	if got := s.names(); got != want {
		t.Fatalf("The Pods are [%s], they should be [%s].\n%s", got, want, why)
	}
}

func Test1MissingPodsAreCreated(t *testing.T) {
	s := newServer(Set{Name: "web", Want: 3})
	check(t, s, "web-1 web-2 web-3", "The Set wants three Pods, and there were none.")
	for name, pod := range s.pods {
		if pod.Set != "web" {
			t.Errorf("%s carries the label %q, it should be web. The next List would not find it.", name, pod.Set)
		}
	}
	s = newServer(Set{Name: "web", Want: 3})
	s.add("web-1", "web-3")
	check(t, s, "web-1 web-2 web-3", "web-2 was missing. A count of two does not tell which one to create.")
}

func Test2WhenAllIsWellNothingIsWritten(t *testing.T) {
	s := newServer(Set{Name: "web", Want: 2, Have: 2})
	s.add("web-1", "web-2")
	check(t, s, "web-1 web-2", "Nothing was to be done.")
	if len(s.writes) > 0 {
		t.Fatalf("All was as it should be, and Reconcile wrote: %s.\nA loop runs for ever. If each pass writes, it is "+
			"never at rest, and every write wakes up all who watch the object.", strings.Join(s.writes, ", "))
	}
}

func Test3PodsThatAreTooManyAreDeleted(t *testing.T) {
	s := newServer(Set{Name: "web", Want: 1})
	s.add("web-1", "web-2", "web-3", "web-x")
	check(t, s, "web-1", "The Set wants one Pod, and its name is web-1.")
	s = newServer(Set{Name: "web", Want: 1})
	s.add("web-2")
	check(t, s, "web-1", "There was one Pod, as wanted, but not the one: the Pods are web-1 to web-Want.")
	s = newServer(Set{Name: "web", Want: 2})
	s.add("web-0", "web-1", "web-10", "web-2")
	check(t, s, "web-1 web-2", "The Set wants web-1 and web-2. As a number, 10 is more than 2; as text, it is less.")
}

func Test4PodsOfOthersAreNotTouched(t *testing.T) {
	s := newServer(Set{Name: "web", Want: 1}, Set{Name: "db", Want: 2})
	s.add("web-1", "db-1", "db-2")
	check(t, s, "db-1 db-2 web-1", "The Pods of db belong to another Set.")
}

func Test5AnErrorIsNotAnEmptyList(t *testing.T) {
	for _, call := range []string{"list", "get"} {
		s, broken := newServer(Set{Name: "web", Want: 2}), errors.New("connection refused")
		s.add("web-1", "web-2")
		s.fail[call] = broken
		err := Reconcile(s, "web")
		if !errors.Is(err, broken) {
			t.Fatalf("The %s failed with %q, and Reconcile returned %v. It should return that error, so that somebody "+
				"calls it again.", call, broken, err)
		}
		if len(s.writes) > 0 {
			t.Fatalf("The %s failed, and Reconcile wrote: %s.\nNobody knows what is there, so nothing may be done.",
				call, strings.Join(s.writes, ", "))
		}
	}
	s := newServer()
	s.add("web-1")
	if err := Reconcile(s, "web"); err != nil || len(s.writes) > 0 {
		t.Fatalf("The Set is gone, and web-1 is left. Reconcile returned %v and wrote [%s]. There is nothing to do: "+
			"others clean up.", err, strings.Join(s.writes, ", "))
	}
}

func Test6TwoLoopsAtOnce(t *testing.T) {
	s := newServer(Set{Name: "web", Want: 2})
	s.add("web-9")
	s.before = func(call string) { // The other loop is always a little faster.
		verb, name, _ := strings.Cut(call, " ")
		switch verb {
		case "create":
			s.add(name)
		case "delete":
			delete(s.pods, name)
		}
	}
	check(t, s, "web-1 web-2", "Another loop does the same at the same time.")
}

func Test7AFailedWriteIsReturned(t *testing.T) {
	for _, call := range []string{"create web-2", "delete web-9", "status 2"} {
		s, broken := newServer(Set{Name: "web", Want: 2}), errors.New("the server is busy")
		s.add("web-1", "web-9")
		s.fail[call] = broken
		if err := Reconcile(s, "web"); !errors.Is(err, broken) {
			t.Fatalf("%q failed, and Reconcile returned %v. It should return that error: whoever calls it has to know "+
				"that work is left.", call, err)
		}
		if last := s.writes[len(s.writes)-1]; last != call {
			t.Fatalf("%q failed, and Reconcile went on with %q. It should return the error at once: a server that is "+
				"busy gets no rest otherwise.", call, last)
		}
		delete(s.fail, call)
		check(t, s, "web-1 web-2", "The call before this one had failed half way.")
	}
}

func Test8TheStatusSaysWhatThereIs(t *testing.T) {
	s := newServer(Set{Name: "web", Want: 2})
	check(t, s, "web-1 web-2", "")
	if have := s.sets["web"].Have; have != 2 {
		t.Fatalf("There are two Pods, and Have is %d.", have)
	}
	if last := s.writes[len(s.writes)-1]; last != "status 2" {
		t.Fatalf("The writes were: %s. The status comes last: it says what is there, not what is planned.",
			strings.Join(s.writes, ", "))
	}

	s = newServer(Set{Name: "web", Want: 1})
	s.before = func(call string) {
		if call == "status 1" && s.sets["web"].Want == 1 { // The Set changes after Reconcile has read it.
			s.sets["web"] = Set{Name: "web", Want: 2, Version: 2}
		}
	}
	if err := Reconcile(s, "web"); !errors.Is(err, kube.ErrConflict) {
		t.Fatalf("Somebody changed the Set meanwhile, and the server answered ErrConflict. Reconcile returned %v; it "+
			"should return ErrConflict.", err)
	}
	check(t, s, "web-1 web-2", "The next call reads the Set anew.")
	if set := s.sets["web"]; set.Want != 2 || set.Have != 2 {
		t.Fatalf("The Set wants %d and says that it has %d. It should be 2 and 2.", set.Want, set.Have)
	}
}

func Test9TheProgramMayDieAfterAnyCall(t *testing.T) {
	for dies := 1; dies < 100; dies++ {
		s := newServer(Set{Name: "web", Want: 3})
		s.add("web-2", "web-8", "web-9")
		s.crashAfter = dies
		lived, err := s.reconcile("web")
		if err != nil {
			t.Fatalf("Reconcile returned %v, although no answer was an error.", err)
		}
		if lived {
			return // All calls were tried.
		}
		before := slices.Clone(s.writes)
		check(t, s, "web-1 web-2 web-3", "The program died after call "+
			strings.Join(before, ", ")+", and the next began from what was there.")
		if have := s.sets["web"].Have; have != 3 {
			t.Fatalf("The program died after the writes [%s]. The next one left Have at %d, it should be 3.",
				strings.Join(before, ", "), have)
		}
		s.writes = nil
		check(t, s, "web-1 web-2 web-3", "")
		if len(s.writes) > 0 {
			t.Fatalf("All was well again, and another pass wrote: %s.", strings.Join(s.writes, ", "))
		}
	}
	t.Fatal("Reconcile makes a hundred calls for three Pods.")
}
