package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// loadCRDs creates many CRDs at once.
func (r *run) loadCRDs() error {
	client, err := dial(r.config, true)
	if err != nil {
		return err
	}
	if err := r.createNamespace(client); err != nil {
		return err
	}
	r.settle(2*time.Second, "memory at rest")
	rest := r.memory("rest")
	if err := r.createCRDs(client, r.options.crds); err != nil {
		return err
	}
	r.settle(5*time.Second, "memory of CRDs")
	r.result["crd_each"] = (r.memory("after_crds") - rest) / float64(r.options.crds)
	return nil
}

// createCRDs creates CRDs with sixteen workers and waits until all are established and served.
func (r *run) createCRDs(client *client, count int) error {
	const workers = 16
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	established := make(chan error, 1)
	var seen atomic.Int64
	if err := r.watchCRDs(ctx, client, count, &seen, established); err != nil {
		return err
	}
	processor, began := r.server.cpu(), time.Now()
	create := func(_, n int) error {
		body := encode(definitionAt(n).crd())
		_, err := client.do(request{method: http.MethodPost, path: definitions, body: body})
		return err
	}
	if _, _, err := parallel("create CRDs", count, workers, create); err != nil {
		return err
	}
	r.result["crds_created"] = time.Since(began).Seconds()
	stop := report("established", count, &seen)
	err := <-established
	stop()
	if err != nil {
		return err
	}
	r.result["crds_established"] = time.Since(began).Seconds()
	serve := func(_, n int) error {
		for {
			_, err := client.do(request{path: definitionAt(n).path() + "?limit=1"})
			var failed *failure
			if !errors.As(err, &failed) || failed.code != http.StatusNotFound || time.Since(began) > 4*time.Minute {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if _, _, err := parallel("serve CRDs", count, workers, serve); err != nil {
		return err
	}
	r.result["crds_served"] = time.Since(began).Seconds()
	r.result["crds_cpu"] = (r.server.cpu() - processor) / float64(count)
	say("%d CRDs: created after %.2f s, established %.2f s, served %.2f s; processor of the server: %.2f ms each", count,
		r.result["crds_created"], r.result["crds_established"], r.result["crds_served"], 1e3*r.result["crds_cpu"])
	return nil
}

// watchCRDs reports when so many CRDs are established. A watch that the server ends is opened again.
func (r *run) watchCRDs(ctx context.Context, client *client, count int, seen *atomic.Int64, done chan<- error) error {
	open := func() (*http.Response, error) { return client.open(ctx, request{path: definitions + "?watch=true"}) }
	response, err := open()
	if err != nil {
		return err
	}
	names := map[string]bool{}
	follow := func() {
		defer response.Body.Close()
		lines := json.NewDecoder(bufio.NewReaderSize(response.Body, 1<<16))
		for len(names) < count {
			var event struct {
				Type   string
				Object struct {
					Metadata struct{ Name string }
					Status   struct {
						Conditions []struct{ Type, Status string }
					}
				}
			}
			if lines.Decode(&event) != nil {
				return
			}
			for _, condition := range event.Object.Status.Conditions {
				if condition.Type == "Established" && condition.Status == "True" {
					names[event.Object.Metadata.Name] = true
				}
			}
			seen.Store(int64(len(names)))
		}
	}
	go func() {
		for follow(); len(names) < count; follow() {
			say("the watch of CRDs ended with %d of %d established, and is opened again", len(names), count)
			time.Sleep(100 * time.Millisecond)
			if response, err = open(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return nil
}
