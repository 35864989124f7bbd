package main

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// run is one run against an API server: its clients, its processes and the results so far.
type run struct {
	config  *rest.Config
	server  processes
	result  cell
	options serverOptions
}

// serverOptions is the amount of work.
type serverOptions struct {
	objects, crds, updates int
	watching               time.Duration
}

// runServer loads an API server as Go clients do, and measures it by the clock, in its processor time and its memory.
func runServer(args []string) (cell, error) {
	set := flag.NewFlagSet("server", flag.ContinueOnError)
	part := set.String("part", "objects", "objects, watch, crds or updates")
	kubeconfig := set.String("kubeconfig", "", "kubeconfig of the server")
	processIDs := set.String("processes", "", "ids of the server's processes, with commas")
	options := serverOptions{}
	set.IntVar(&options.objects, "objects", 10_000, "number of objects")
	set.IntVar(&options.crds, "crds", 100, "number of CRDs")
	set.IntVar(&options.updates, "updates", 100_000, "number of updates")
	set.DurationVar(&options.watching, "watching", 4*time.Second, "time that watchers are loaded")
	if err := parse(set, args); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return nil, err
	}
	this := &run{config: config, result: cell{}, options: options}
	for id := range strings.SplitSeq(*processIDs, ",") {
		number, err := strconv.Atoi(id)
		if err != nil {
			return nil, fmt.Errorf("--processes: %w", err)
		}
		this.server = append(this.server, number)
	}
	// The client shares the cores with the server, so it collects its garbage less often.
	debug.SetGCPercent(800)
	parts := map[string]func() error{
		"objects": this.loadObjects, "watch": this.loadWatches, "crds": this.loadCRDs, "updates": this.loadUpdates,
	}
	load, known := parts[*part]
	if !known {
		return nil, fmt.Errorf("unknown part: %s; use objects, watch, crds or updates", *part)
	}
	if err := this.waitReady(); err != nil {
		return nil, err
	}
	if err := load(); err != nil {
		// What has been measured so far counts.
		say("stopped early: %v", err)
		this.result["stopped"] = 1
	}
	return this.result, nil
}

// waitReady waits until the server is ready.
func (r *run) waitReady() error {
	client, err := dial(r.config, true)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(time.Minute)
	for {
		_, err = client.do(request{path: "/readyz"})
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// settle waits, so that memory can be read at rest.
func (r *run) settle(wait time.Duration, why string) {
	say("waiting %v: %s", wait, why)
	time.Sleep(wait)
}

// measure runs `operations` operations and stores their rate, the median of their times if they run one after another,
// and the processor time of the server and of this client for each of them.
func (r *run) measure(name string, operations, workers int, operation func(worker, number int) error) error {
	zipped.Store(false)
	server, own := r.server.cpu(), cpuSeconds()
	times, seconds, err := parallel(name, operations, workers, operation)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	each := float64(operations)
	r.result[name+"_rate"] = each / seconds
	r.result[name+"_median"] = percentile(times, 50)
	r.result[name+"_p99"] = percentile(times, 99)
	r.result[name+"_cpu"] = (r.server.cpu() - server) / each
	r.result[name+"_zipped"] = wasZipped()
	r.result[name+"_client"] = (cpuSeconds() - own) / each
	say("%s: %.0f/s, median %.2f ms, p99 %.2f ms; processor: server %.1f µs, client %.1f µs", name, each/seconds,
		1e3*r.result[name+"_median"], 1e3*r.result[name+"_p99"], 1e6*r.result[name+"_cpu"], 1e6*r.result[name+"_client"])
	return nil
}

// notAsked is the value that says that the client did not ask for gzip.
const notAsked = -1

// wasZipped returns 1 if a server compressed a reply.
func wasZipped() float64 {
	if zipped.Load() {
		return 1
	}
	return 0
}

// memory stores the resident memory of the server and returns it.
func (r *run) memory(name string) float64 {
	bytes := r.server.resident()
	r.result[name] = bytes
	say("%s: %.1f MB", name, bytes/1e6)
	return bytes
}
