package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	rtclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/peers/bench/turns"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// user is who the measured systems are. Kubernetes has a flow schema for this user alone, so the API server's metrics
// count its requests, at no cost. All other processes are administrators.
const user, flow = "system:kube-controller-manager", "kube-controller-manager"

// Result is what a system took for a load.
type Result struct {
	// Wall and the processor times are in seconds. Servers are kube-apiserver and etcd.
	Wall, CPU, Servers float64
	Resident           uint64 // The most that the controller's process ever had resident, in bytes.
	Requests           float64
	// Took are the seconds from write to effect, by row.
	Took map[string][]float64
}

// settle is how long the processes go on before the counters are read: events, and updates of status that nobody waits
// for, belong to the work.
const settle = 2 * time.Second

// Turn measures a system on a new control plane. One object goes through all steps before the measurement begins, so
// what it takes to start does not count.
func (l *Load) Turn(ctx context.Context, s System, p Programs) (r *Result, err error) {
	const token = "measured"
	plane, err := upstream.Start(ctx, upstream.Options{Users: map[string]string{token: user}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	config, err := Config(plane.Kubeconfig)
	if err != nil {
		return nil, err
	}
	c, err := rtclient.New(config, rtclient.Options{Scheme: l.Scheme})
	if err != nil {
		return nil, err
	}
	err = eventually(ctx, func() error {
		return c.Get(ctx, types.NamespacedName{Name: Namespace}, &corev1.Namespace{})
	})
	if err == nil {
		err = l.prepare(ctx, c)
	}
	if err == nil && l.Kubelet {
		_, err = plane.Run("kubelet", p["self"], "-be", "kubelet", "-kubeconfig", plane.Kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	w, err := startWatcher(ctx, l, p["self"], plane.Kubeconfig)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	kubeconfig, err := plane.WriteKubeconfig(user, token)
	if err != nil {
		return nil, err
	}
	m := meter{server: kubernetes.NewForConfigOrDie(config), servers: plane.PIDs()[:2]}
	access := Access{kubeconfig, plane.URL, token, filepath.Join(plane.Dir, "certs", "apiserver.crt")}
	m.controller, err = plane.Run("controller", p[s.Program], s.args(access)...)
	if err != nil {
		return nil, err
	}
	if err = l.wave(ctx, c, w, l.Objects, 1, map[string][]float64{}); err == nil {
		r, err = l.measure(ctx, c, w, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; the end of the controller's log:\n%s", err, plane.Tail())
	}
	return r, nil
}

// Config returns the configuration of a client without limits on requests.
func Config(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		config.QPS = -1
	}
	return config, err
}

// eventually asks until there is no error, for a minute.
func eventually(ctx context.Context, ask func() error) (err error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err = ask(); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// measure runs all waves of the load on a system that works.
func (l *Load) measure(ctx context.Context, c rtclient.Client, w *watcher, m meter) (*Result, error) {
	time.Sleep(settle)
	from, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	took, begin := map[string][]float64{}, time.Now()
	for first := 0; first < l.Objects; first += l.Wave {
		if err := l.wave(ctx, c, w, first, min(l.Wave, l.Objects-first), took); err != nil {
			return nil, err
		}
	}
	wall := time.Since(begin).Seconds()
	time.Sleep(settle)
	to, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	return &Result{
		wall, to.CPU - from.CPU, to.Servers - from.Servers, to.Resident, to.Requests - from.Requests, took,
	}, nil
}

// meter reads the counters of the processes: of the API server and etcd, and of the controller.
type meter struct {
	server     kubernetes.Interface
	servers    []int
	controller int
}

// dispatched finds the requests of the measured user in the API server's metrics.
var dispatched = regexp.MustCompile(
	`(?m)^apiserver_flowcontrol_dispatched_requests_total\{flow_schema="` + flow + `",.*\} (\S+)$`)

func (m meter) read(ctx context.Context) (r Result, err error) {
	cpu, peak, err1 := turns.Usage(m.controller)
	etcd, _, err2 := turns.Usage(m.servers[0])
	server, _, err3 := turns.Usage(m.servers[1])
	metrics, err4 := m.server.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return r, err
	}
	r.CPU, r.Servers, r.Resident = cpu.Seconds(), (etcd + server).Seconds(), peak
	count := dispatched.FindSubmatch(metrics)
	if count == nil {
		return r, fmt.Errorf("the API server has not counted requests of %s", user)
	}
	r.Requests, err = strconv.ParseFloat(string(count[1]), 64)
	return r, err
}

// Table returns the table of a load. results has those of each system.
func (l *Load) Table(results [][]*Result) string {
	var names []string
	for _, s := range l.Systems {
		names = append(names, s.Name)
	}
	var rows []turns.Row
	add := func(title string, of func(r *Result) float64) { rows = append(rows, turns.RowOf(title, results, of)) }
	add("CPU time of the controller, s", func(r *Result) float64 { return r.CPU })
	add("peak resident memory, MB", func(r *Result) float64 { return float64(r.Resident) / 1e6 })
	add("requests", func(r *Result) float64 { return r.Requests })
	var steps []string
	for _, step := range l.Steps {
		steps = append(steps, step.Row)
	}
	for _, step := range slices.Compact(steps) {
		for _, percent := range []int{50, 99} {
			add(fmt.Sprintf("%s to effect, p%d, ms", step, percent), func(r *Result) float64 {
				return 1e3 * turns.Percentile(r.Took[step], percent)
			})
		}
	}
	add("time until all is done, s", func(r *Result) float64 { return r.Wall })
	add("CPU time of kube-apiserver and etcd, s", func(r *Result) float64 { return r.Servers })
	return turns.Table(l.Title, names, rows)
}
