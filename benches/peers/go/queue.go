package main

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

const (
	queueWorkers = 8
	hotKeys      = 1000
)

func queueKeys(load string, adds int) []string {
	distinct := adds
	if load == "hot" {
		distinct = hotKeys
	}
	keys := make([]string, distinct)
	for n := range keys {
		keys[n] = fmt.Sprintf("team-%02d-prod/payments-%09d", n%25, n)
	}
	return keys
}

// runQueue adds keys in one goroutine and processes them in eight. It returns the adds a second, up to the end of the
// last key.
func runQueue(args []string) (cell, error) {
	set := flag.NewFlagSet("queue", flag.ContinueOnError)
	load := set.String("load", "distinct", "distinct or hot")
	kind := set.String("queue", "client-go", "client-go, client-go-bare or priority")
	adds := set.Int("adds", 0, "number of adds")
	if err := parse(set, args); err != nil {
		return nil, err
	}
	keys := queueKeys(*load, *adds)
	var queue workqueue.TypedInterface[string]
	switch *kind {
	case "client-go":
		// The name enables the metrics that controller-runtime registers, as in a controller.
		queue = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "bench"})
	case "client-go-bare":
		queue = workqueue.NewTyped[string]()
	case "priority":
		queue = priorityqueue.New[string]("bench")
	default:
		return nil, fmt.Errorf("unknown queue: %s", *kind)
	}

	// A counter for each worker, on separate cache lines.
	var worked [queueWorkers]struct {
		count atomic.Int64
		_     [56]byte
	}
	total := func() (sum int64) {
		for n := range worked {
			sum += worked[n].count.Load()
		}
		return sum
	}
	var workers sync.WaitGroup
	for n := range queueWorkers {
		workers.Go(func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				queue.Done(key)
				worked[n].count.Add(1)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	processor, began := cpuSeconds(), time.Now()
	for n := range *adds {
		queue.Add(keys[n%len(keys)])
	}
	// The priority queue drops its backlog on shutdown, so wait for the last key first.
	for *load == "distinct" && total() < int64(*adds) {
		time.Sleep(100 * time.Microsecond)
	}
	for queue.Len() > 0 {
		time.Sleep(100 * time.Microsecond)
	}
	elapsed := time.Since(began).Seconds()
	processor = cpuSeconds() - processor
	queue.ShutDown()
	workers.Wait()
	return cell{"rate": float64(*adds) / elapsed, "processor": processor, "worked": float64(total())}, nil
}
