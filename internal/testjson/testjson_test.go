package testjson_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/testjson"
)

func TestRead(t *testing.T) {
	events := `
{"Action":"run","Test":"TestParts"}
{"Action":"run","Test":"TestParts/a"}
{"Action":"output","Test":"TestParts/a","Output":"why a\n"}
{"Action":"fail","Test":"TestParts/a"}
{"Action":"run","Test":"TestParts/b"}
{"Action":"pass","Test":"TestParts/b"}
{"Action":"fail","Test":"TestParts"}
{"Action":"run","Test":"TestItself"}
{"Action":"run","Test":"TestItself/c/d"}
{"Action":"pass","Test":"TestItself/c/d"}
{"Action":"fail","Test":"TestItself"}
{"Action":"run","Test":"TestSkipped"}
{"Action":"skip","Test":"TestSkipped"}
{"Action":"run","Test":"TestEndless"}
{"Action":"output","Output":"panic\n"}
{"Action":"fail"}
`
	tests, output, err := testjson.Read(strings.NewReader(events))
	want := []testjson.Test{
		{Name: "TestParts/a", Outcome: "fail", Output: "why a\n"},
		{Name: "TestParts/b", Outcome: "pass"},
		{Name: "TestItself", Outcome: "fail"},
		{Name: "TestItself/c/d", Outcome: "pass"},
		{Name: "TestSkipped", Outcome: "skip"},
		{Name: "TestEndless", Outcome: "fail"},
	}
	if err != nil || !slices.Equal(tests, want) || output != "why a\npanic\n" {
		t.Errorf("got %+v, %q, %v, want %+v", tests, output, err, want)
	}
	if _, _, err := testjson.Read(strings.NewReader("{]")); err == nil {
		t.Error("an event that is not JSON is no error")
	}
}
