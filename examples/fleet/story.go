package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/klog/v2"
)

// story is a site on which the fleet runs, and the means to change and print it.
type story struct {
	*site
	ctx context.Context
	out io.Writer
	// shown counts how often the copies were shown.
	shown int
}

// tell plays the story and prints it to out.
func tell(ctx context.Context, out io.Writer) (err error) {
	ctx, stop := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	defer stop()
	begin := time.Now()
	s := &story{ctx: ctx, out: out}
	if s.site, err = newSite(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	fleet, err := newFleet(s.config(hubHost), options{discovery: discovery()})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- fleet.Local().Run(ctx) }()
	if err = s.play(); err == nil {
		fmt.Fprintf(out, "\nShown in %.1f s: one controller kept a config map in %d clusters, %d times.\n",
			time.Since(begin).Seconds(), len(s.servers)-1, s.shown)
	}
	stop()
	return errors.Join(err, <-done)
}

func (s *story) play() error {
	fmt.Fprintln(s.out, "The config map default/motd is made in the hub, and three projects with an API server each.")
	original := motd()
	original.Data = map[string]string{"text": "good morning"}
	if err := errors.Join(s.hub.Create(s.ctx, original), s.add(s.ctx, "shop"), s.add(s.ctx, "blog"),
		s.add(s.ctx, "lab")); err != nil {
		return err
	}
	if err := s.expect("good morning", "shop", "blog", "lab"); err != nil {
		return err
	}
	fmt.Fprintln(s.out, "\nThe API server of lab refuses connections. The original changes, and another project comes.")
	s.cut("lab", true)
	original.Data["text"] = "good evening"
	if err := errors.Join(s.hub.Update(s.ctx, original), s.add(s.ctx, "depot")); err != nil {
		return err
	}
	if err := s.expect("good evening", "shop", "blog", "depot"); err != nil {
		return err
	}
	fmt.Fprintln(s.out, "\nIt answers again.")
	s.cut("lab", false)
	if err := s.expect("good evening", "lab"); err != nil {
		return err
	}
	fmt.Fprintln(s.out, "\nSomebody deletes the copy in shop.")
	shop, err := s.in("shop")
	if err != nil {
		return err
	}
	if err := shop.Delete(s.ctx, motd()); err != nil {
		return err
	}
	if err := s.expect("good evening", "shop"); err != nil {
		return err
	}
	fmt.Fprintln(s.out,
		"\nThe project blog is deleted: what is in its API server is left alone. Then the original goes, and with it "+
			"the copies.")
	if err := errors.Join(s.hub.Delete(s.ctx, projectOf("blog")), s.settle(),
		s.hub.Delete(s.ctx, original)); err != nil {
		return err
	}
	return errors.Join(s.expect("", "shop", "lab", "depot"), s.expect("good evening", "blog"))
}

// settle waits until the fleet has noticed that a Project is gone.
func (s *story) settle() error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// expect waits until the copies on the hosts say want.
func (s *story) expect(want string, hosts ...string) error {
	for _, host := range hosts {
		begin := time.Now()
		for deadline := begin.Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			got, err := s.text(s.ctx, host)
			if err == nil && got == want {
				break
			}
			if time.Now().After(deadline) || s.ctx.Err() != nil {
				return fmt.Errorf("in %s there is %q (%v); want %q", host, got, err, want)
			}
		}
		s.shown++
		fmt.Fprintf(s.out, "  ✓ %-5s says %q\n", host, want)
	}
	return nil
}
