package lean

import (
	"net/http/httptest"
	"testing"
)

// TestMeasure: with all systems, handlers get each object of the replay server once and all its updates. After a second
// list, our handlers get nothing, because nothing has changed.
func TestMeasure(t *testing.T) {
	const n = 200
	for resource, r := range Resources {
		file, err := r.Generate(t.TempDir(), n)
		if err != nil {
			t.Fatal(err)
		}
		for system := range Systems {
			t.Run(resource+"/"+system, func(t *testing.T) {
				replay, err := NewReplay(r, file, n)
				if err != nil {
					t.Fatal(err)
				}
				server := httptest.NewServer(replay)
				defer server.Close()
				got, err := Measure(t.Context(),
					Plan{
						System: system, Resource: resource, Server: server.URL, Objects: n, Handlers: 2,
						Rates: []int{1000}, Seconds: 1, Relist: true,
					})
				if err != nil {
					t.Fatal(err)
				}
				if got.Updates[0].Heard < 2000 || got.Steady == 0 {
					t.Errorf("%+v", got)
				}
				if system == "flyball" && got.Relist.Heard != 0 {
					t.Errorf("%d calls after listing unchanged objects again", got.Relist.Heard)
				}
			})
		}
	}
}

// TestPodsAreDistinct: no two pods have the same name, however many there are.
func TestPodsAreDistinct(t *testing.T) {
	const n = 1_000_000
	seen := make(map[string]bool, n)
	for i := range n {
		if s := suffix(i); seen[s] || len(s) != 5 {
			t.Fatalf("pod %d: %s", i, s)
		} else {
			seen[s] = true
		}
	}
	if a, b := Pod(7, 1), Pod(7+Services, 1); a.GenerateName != b.GenerateName || a.Name == b.Name {
		t.Errorf("%s and %s", a.Name, b.Name)
	}
}
