package conditions_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client/conditions"
)

// The transition time changes only with the status.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list []metav1.Condition
		set := func(status metav1.ConditionStatus, message string) bool {
			time.Sleep(time.Minute)
			return conditions.Set(&list, 3,
				metav1.Condition{Type: "Up", Status: status, Reason: "R", Message: message})
		}
		at := func() time.Time { return conditions.Get(list, "Up").LastTransitionTime.Time }
		if !set("True", "a") || list[0].ObservedGeneration != 3 {
			t.Errorf("first: %+v", list)
		}
		first := at()
		if set("True", "a") || !at().Equal(first) {
			t.Error("nothing changed, and something did")
		}
		if !set("True", "b") || !at().Equal(first) || list[0].Message != "b" {
			t.Errorf("message: %+v", list)
		}
		if !set("False", "b") || at().Equal(first) {
			t.Errorf("status: %+v", list)
		}
		if !set("False", strings.Repeat("x", 40000)) || len(list[0].Message) != 32768 {
			t.Errorf("a message of %d characters", len(list[0].Message))
		}
	})
}

// The API server returns a message as it was set, so that setting it again changes nothing.
func TestMessagesAreStoredAsTheyAreSet(t *testing.T) {
	for name, message := range map[string]string{
		"a character at the end of what fits": strings.Repeat("x", 32767) + "é",
		"many long characters":                strings.Repeat("漢", 20000),
		"no UTF-8":                            "file \xff\xfe is not text",
		"no UTF-8, long":                      strings.Repeat("\xff", 40000),
		"short":                               "é",
	} {
		var list, back []metav1.Condition
		c := metav1.Condition{Type: "Up", Status: "True", Reason: "R", Message: message}
		conditions.Set(&list, 1, c)
		sent, err := json.Marshal(list)
		if err == nil {
			err = json.Unmarshal(sent, &back)
		}
		if err != nil {
			t.Fatal(err)
		}
		if conditions.Set(&back, 1, c) {
			t.Errorf("%s: it changed on its way", name)
		}
		if n := len(list[0].Message); n > 32768 || n < min(len(message), 32765) && utf8.ValidString(message) {
			t.Errorf("%s: %d bytes of %d are left", name, n, len(message))
		}
	}
}

// An object without changes causes no write. A stall ends with its cause.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list []metav1.Condition
		status := func() string {
			words := []string{}
			for _, c := range list {
				words = append(words, c.Type+"="+string(c.Status))
			}
			return strings.Join(words, " ")
		}
		conditions.Set(&list, 1, metav1.Condition{Type: "Another", Status: "True", Reason: "R"})
		for _, c := range []struct {
			state conditions.State
			want  string
		}{
			{conditions.IsStalled, "Stalled=True Reconciling=False Ready=False Another=True"},
			{conditions.IsReconciling, "Stalled=False Reconciling=True Ready=Unknown Another=True"},
			{conditions.IsReady, "Stalled=False Reconciling=False Ready=True Another=True"},
		} {
			if !conditions.SetState(&list, 1, c.state, "R", "m") || status() != c.want {
				t.Errorf("%s, want %s", status(), c.want)
			}
			time.Sleep(time.Minute)
			if conditions.SetState(&list, 1, c.state, "R", "m") {
				t.Error("the same state again is a change")
			}
		}
		if !conditions.Is(list, conditions.Ready, metav1.ConditionTrue) || !conditions.Remove(&list, "Another") ||
			conditions.Remove(&list, "Another") {
			t.Errorf("conditions %+v", list)
		}
	})
}
