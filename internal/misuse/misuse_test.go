package misuse_test

import (
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/misuse"
)

func TestIsNil(t *testing.T) {
	var pointer *int
	var function func()
	var channel chan int
	for _, v := range []any{nil, pointer, function, channel} {
		if !misuse.IsNil(v) {
			t.Errorf("%T is not nil", v)
		}
	}
	for _, v := range []any{new(int), func() {}, 0, "", map[string]string(nil), []int(nil), struct{}{}} {
		if misuse.IsNil(v) {
			t.Errorf("%T is nil", v)
		}
	}
}

func TestNil(t *testing.T) {
	var pointer *int
	for want, err := range map[string]error{
		"the x is nil":        misuse.Nil("the x", nil),
		"the x is a nil *int": misuse.Nil("the x", pointer),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := misuse.Nil("the x", new(int)); err != nil {
		t.Error(err)
	}
}

func TestName(t *testing.T) {
	for _, good := range []string{"a", "greeter", "Greeter2", "flyball.dev/greeter-2", "member:3_x"} {
		if err := misuse.Name(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "a b", "ö", `a"`, "-a", "a/", "a\n", strings.Repeat("a", 254)} {
		if misuse.Name(bad) == nil {
			t.Errorf("%q is taken for a name", bad)
		}
	}
}
