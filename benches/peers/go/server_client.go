package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

const (
	jsonType   = "application/json"
	mergePatch = "application/merge-patch+json"
	jsonPatch  = "application/json-patch+json"
	applyPatch = "application/apply-patch+yaml"
	protobuf   = "application/vnd.kubernetes.protobuf"
	// typed is what the typed clients of client-go accept.
	typed = protobuf + "," + jsonType
)

// client is client-go's HTTP client: its TLS, its HTTP/2, its authentication and its gzip. Requests are prepared and
// replies are not decoded, because the client shares the cores with the server.
type client struct {
	http *http.Client
	base string
}

// dial makes a client with connections of its own. A compressing one asks for gzip, which is client-go's default.
func dial(config *rest.Config, compressing bool) (*client, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = !compressing
	// Configurations with a dialer of their own do not share a transport.
	config.Dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &client{http: http, base: config.Host}, nil
}

// dialAll makes clients with a connection each, and opens the connections.
func dialAll(config *rest.Config, count int) ([]*client, error) {
	clients := make([]*client, count)
	for n := range clients {
		var err error
		if clients[n], err = dial(config, true); err != nil {
			return nil, err
		}
	}
	_, _, err := parallel("connect", count, count, func(worker, _ int) error {
		_, err := clients[worker].do(request{path: "/version"})
		return err
	})
	return clients, err
}

type request struct {
	method, path, accept, contentType string
	body                              []byte
	// keep returns the body of the reply.
	keep bool
}

type reply struct {
	size int
	body []byte
}

// failure is a reply with an error code.
type failure struct {
	code    int
	request string
	body    []byte
}

func (f *failure) Error() string { return fmt.Sprintf("%s: %d: %.300s", f.request, f.code, f.body) }

// open sends a request, again and later if the server asks for that, as client-go does.
func (c *client) open(ctx context.Context, ask request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		response, err := c.openOnce(ctx, ask)
		var failed *failure
		if !errors.As(err, &failed) || failed.code != http.StatusTooManyRequests || attempt == 10 {
			return response, err
		}
		say("%v", err)
		time.Sleep(time.Second)
	}
}

func (c *client) openOnce(ctx context.Context, ask request) (*http.Response, error) {
	method := ask.method
	if method == "" {
		method = http.MethodGet
	}
	made, err := http.NewRequestWithContext(ctx, method, c.base+ask.path, bytes.NewReader(ask.body))
	if err != nil {
		return nil, err
	}
	if ask.accept == "" {
		ask.accept = jsonType
	}
	made.Header.Set("Accept", ask.accept)
	if len(ask.body) > 0 {
		if ask.contentType == "" {
			ask.contentType = jsonType
		}
		made.Header.Set("Content-Type", ask.contentType)
	} else {
		made.Body = nil
	}
	response, err := c.http.Do(made)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return nil, &failure{response.StatusCode, method + " " + ask.path, body}
	}
	if response.Uncompressed {
		zipped.Store(true)
	}
	return response, nil
}

// zipped says that a server compressed a reply, since it was last reset.
var zipped atomic.Bool

func (c *client) do(ask request) (reply, error) {
	response, err := c.open(context.Background(), ask)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	if ask.keep {
		body, err := io.ReadAll(response.Body)
		return reply{len(body), body}, err
	}
	size, err := io.Copy(io.Discard, response.Body)
	return reply{int(size), nil}, err
}

// parallel runs operations in workers until one fails. It returns the sorted times of the operations, and the time of
// all, in seconds. Work that takes longer than a second prints its progress.
func parallel(name string, operations, workers int, operation func(worker, number int) error) ([]float64, float64, error) {
	var next, done atomic.Int64
	var failed atomic.Pointer[error]
	times := make([]float64, operations)
	stop := report(name, operations, &done)
	defer stop()
	var group sync.WaitGroup
	began := time.Now()
	for worker := range workers {
		group.Go(func() {
			for failed.Load() == nil {
				number := int(next.Add(1)) - 1
				if number >= operations {
					return
				}
				start := time.Now()
				if err := operation(worker, number); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
				times[number] = time.Since(start).Seconds()
				done.Add(1)
			}
		})
	}
	group.Wait()
	seconds := time.Since(began).Seconds()
	if err := failed.Load(); err != nil {
		return nil, seconds, *err
	}
	slices.Sort(times)
	return times, seconds, nil
}

// report prints how many operations are done, and of how many unless that is 0: every second at first, then every five.
func report(name string, of int, done *atomic.Int64) (stop func()) {
	ended := make(chan struct{})
	go func() {
		for second := 1; ; second++ {
			select {
			case <-ended:
				return
			case <-time.After(time.Second):
			}
			if second > 3 && second%5 != 0 {
				continue
			}
			if of > 0 {
				say("%s: %d of %d after %d s", name, done.Load(), of, second)
			} else {
				say("%s: %d after %d s", name, done.Load(), second)
			}
		}
	}()
	return func() { close(ended) }
}

// percentile returns a value of sorted values.
func percentile(sorted []float64, percent float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(percent/100*float64(len(sorted))))]
}

// say prints what is going on.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "      "+format+"\n", args...)
}
