package patterns

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// TestWhenToUse keeps the page of a site in three ways for an hour. After two minutes somebody deletes the page.
func TestWhenToUse(t *testing.T) {
	table := "| | the page is missing for | requests in the hour, besides watches |\n|---|---|---|\n"
	missing := map[string]string{}
	for _, way := range []string{"applied once", "applied every five minutes", "a controller"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, newSite())
			before := len(b.Requests())
			o := client.Options{Scheme: scheme(), Uncached: []client.Object{&corev1.ConfigMap{}}}
			c, err := client.New(b.RESTConfig(), o)
			b.must(err)
			stop := func() {}
			apply := func() { b.must(publishOwned(t.Context(), c, scheme(), b.site())) }
			switch way {
			case "applied once":
				apply()
			case "applied every five minutes":
				apply()
				every := time.NewTicker(5 * time.Minute)
				end := make(chan struct{})
				done := make(chan struct{})
				go func() {
					defer close(done)
					for {
						select {
						case <-every.C:
							apply()
						case <-end:
							every.Stop()
							return
						}
					}
				}()
				stop = func() { close(end); <-done }
			case "a controller":
				stop = b.run(func(m ctrl.Manager) error {
					c := m.GetClient()
					r := publishing(func(ctx context.Context, c client.Client, site *Site) error {
						return publishOwned(ctx, c, scheme(), site)
					})(c)
					return ctrl.NewControllerManagedBy(m).For(&Site{}).Owns(&corev1.ConfigMap{}).Complete(r)
				})
			}
			time.Sleep(2*time.Minute + time.Second)
			page := &corev1.ConfigMap{}
			page.Namespace, page.Name = "default", "shop-page"
			b.must(b.Delete(t.Context(), page))
			deleted, wrong := time.Now(), "the rest of the hour"
			looks := 0
			for range 58 * 60 {
				synctest.Wait()
				looks++
				if err := b.Get(t.Context(), client.ObjectKeyFromObject(page), page, client.Live); err == nil {
					wrong = time.Since(deleted).String()
					break
				}
				time.Sleep(time.Second)
			}
			time.Sleep(58*time.Minute - time.Since(deleted))
			synctest.Wait()
			own := 0
			for _, r := range b.Requests()[before:] {
				if r.Verb != "watch" {
					own++
				}
			}
			stop()
			missing[way] = wrong
			table += fmt.Sprintf("| %s | %s | %d |\n", way, wrong, own-looks-1) // without those of the test
		})
	}
	if missing["a controller"] != "0s" || missing["applied once"] == missing["applied every five minutes"] {
		t.Errorf("missing for %v", missing)
	}
	book.Block(t, "when-to-use", table)
}
