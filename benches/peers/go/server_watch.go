package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// loadWatches patches one object that many watch.
func (r *run) loadWatches() error {
	client, err := dial(r.config, true)
	if err != nil {
		return err
	}
	if err := r.createNamespace(client); err != nil {
		return err
	}
	body := encode(configMap(0))
	if _, err := client.do(request{method: http.MethodPost, path: configMaps, body: body}); err != nil {
		return err
	}
	r.settle(2*time.Second, "memory before the watches")
	return first(
		// First, because its memory is measured.
		func() error { return r.watched("many", 1000, 0, jsonEvents) },
		func() error { return r.watched("watch", 200, 0, jsonEvents) },
		func() error { return r.watched("typed_watch", 200, 0, protobufEvents) },
		func() error { return r.watched("paced", 200, 100, jsonEvents) },
	)
}

// eventFormat is a format of the events of a watch.
type eventFormat struct {
	accept string
	// read returns the next event, which is valid until the next read.
	read func(*bufio.Reader) ([]byte, error)
	// modified is at the start of an event of a patch.
	modified []byte
	// marker comes before the number of a patch in an event.
	marker []byte
	// revision returns the resource version of the object of an event, or an empty slice.
	revision func(event []byte) []byte
}

var jsonEvents = eventFormat{
	accept:   jsonType,
	read:     func(from *bufio.Reader) ([]byte, error) { return from.ReadSlice('\n') },
	modified: []byte(`{"type":"MODIFIED"`),
	marker:   []byte(`"n":"`),
	revision: func(event []byte) []byte {
		_, rest, _ := bytes.Cut(event, []byte(`"resourceVersion":"`))
		version, _, _ := bytes.Cut(rest, []byte(`"`))
		return version
	},
}

// protobufEvents are messages with the length in four bytes before each message.
var protobufEvents = eventFormat{
	accept: typed,
	read: func(from *bufio.Reader) ([]byte, error) {
		length, err := from.Peek(4)
		if err != nil {
			return nil, err
		}
		size := int(binary.BigEndian.Uint32(length))
		if _, err := from.Discard(4); err != nil {
			return nil, err
		}
		event, err := from.Peek(size)
		if err != nil {
			return nil, err
		}
		// Peeked bytes stay in the buffer until the next read.
		_, err = from.Discard(size)
		return event, err
	},
	modified: []byte("\x0a\x08MODIFIED"),
	marker:   []byte("\x0a\x01n\x12\x08"),
	revision: func(event []byte) []byte {
		// The uid of 36 bytes is field 5 of the metadata, and the resource version is field 6.
		_, rest, _ := bytes.Cut(event, []byte{5<<3 | 2, 36})
		if len(rest) < 38 || rest[36] != 6<<3|2 || len(rest) < 38+int(rest[37]) {
			return nil
		}
		return rest[38 : 38+int(rest[37])]
	},
}

// deliveries is what the watchers of a run have seen.
type deliveries struct {
	// sent is when each patch was sent, in nanoseconds since `began`.
	began time.Time
	sent  []atomic.Int64
	seen  atomic.Int64
	// last is when the last event arrived, in nanoseconds since `began`.
	last atomic.Int64
}

// watched opens watches of one object, on one client, and patches the object; with a pace, so many times a second.
func (r *run) watched(name string, watchers, pace int, format eventFormat) error {
	watching, err := dial(r.config, true)
	if err != nil {
		return err
	}
	patching, err := dial(r.config, true)
	if err != nil {
		return err
	}
	object := configMaps + "/config-000000"
	found, err := patching.do(request{path: object, keep: true})
	if err != nil {
		return err
	}
	var at struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(found.body, &at); err != nil {
		return err
	}
	const path = configMaps + "?watch=true&fieldSelector=metadata.name%3Dconfig-000000&resourceVersion="
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	resident := r.server.resident()
	events := &deliveries{began: time.Now(), sent: make([]atomic.Int64, 1_000_000)}
	latencies := make([][]float64, watchers)
	streams := make([]*http.Response, watchers)
	zipped.Store(false)
	_, opened, err := parallel(name+": open watches", watchers, 16, func(_, n int) (err error) {
		streams[n], err = watching.open(ctx, request{path: path + at.Metadata.ResourceVersion, accept: format.accept})
		return err
	})
	if err != nil {
		return err
	}
	var ended sync.WaitGroup
	var again atomic.Int64
	failed := make(chan error, watchers)
	for n, stream := range streams {
		ended.Go(func() {
			expected, revision := 1, at.Metadata.ResourceVersion
			for {
				err := events.follow(stream, format, &expected, &revision, &latencies[n])
				if ctx.Err() != nil {
					return
				}
				// A server may end a watch that is slow, as every client expects.
				if err == nil {
					again.Add(1)
					stream, err = watching.open(ctx, request{path: path + revision, accept: format.accept})
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	time.Sleep(time.Second)
	r.result[name+"_opened"], r.result[name+"_zipped"] = opened, wasZipped()
	r.result[name+"_resident_each"] = (r.server.resident() - resident) / float64(watchers)

	var done atomic.Int64
	stop := report(name+": patches", 0, &done)
	processor, own := r.server.cpu(), cpuSeconds()
	events.began = time.Now()
	sent := 0
	for time.Since(events.began) < r.options.watching {
		if pace > 0 {
			time.Sleep(time.Until(events.began.Add(time.Duration(sent) * time.Second / time.Duration(pace))))
		}
		sent++
		events.sent[sent].Store(int64(time.Since(events.began)))
		patch := fmt.Appendf(nil, `{"data":{"n":"%08d"}}`, sent)
		if _, err := patching.do(request{method: http.MethodPatch, path: object, contentType: mergePatch, body: patch}); err != nil {
			return err
		}
		done.Store(int64(sent))
	}
	expected := int64(sent) * int64(watchers)
	for deadline := time.Now().Add(30 * time.Second); events.seen.Load() < expected; time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-failed:
			return err
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %d of %d events arrived", name, events.seen.Load(), expected)
		}
	}
	stop()
	seconds := float64(events.last.Load()) / 1e9
	r.result[name+"_cpu"] = (r.server.cpu() - processor) / float64(expected)
	r.result[name+"_client"] = (cpuSeconds() - own) / float64(expected)
	cancel()
	ended.Wait()
	all := slices.Concat(latencies...)
	slices.Sort(all)
	if again.Load() > 0 {
		say("%s: %d watches were ended by the server, and opened again", name, again.Load())
	}
	r.result[name+"_opened_again"] = float64(again.Load())
	r.result[name+"_rate"] = float64(sent) / seconds
	r.result[name+"_median"], r.result[name+"_p99"] = percentile(all, 50), percentile(all, 99)
	say("%s: %d watchers, %.0f patches/s; processor for a delivery: server %.2f µs, client %.2f µs; median %.2f ms, p99 %.2f ms; %.0f KB a watch",
		name, watchers, r.result[name+"_rate"], 1e6*r.result[name+"_cpu"], 1e6*r.result[name+"_client"],
		1e3*r.result[name+"_median"], 1e3*r.result[name+"_p99"], r.result[name+"_resident_each"]/1e3)
	return nil
}

// follow reads the events of a watch until it ends, and notes their latencies. Every patch has to arrive, once and in
// order: `expected` is the number of the next one, `revision` the resource version of the last one.
func (d *deliveries) follow(
	stream *http.Response, format eventFormat, expected *int, revision *string, latencies *[]float64,
) error {
	defer stream.Body.Close()
	for reader := bufio.NewReaderSize(stream.Body, 16<<10); ; {
		event, err := format.read(reader)
		if err != nil {
			return nil
		}
		at := bytes.Index(event, format.marker) + len(format.marker)
		if at < len(format.marker) || len(event) < at+8 || !bytes.HasPrefix(event, format.modified) {
			return fmt.Errorf("a watch delivered %.300q", event)
		}
		number, err := strconv.Atoi(string(event[at : at+8]))
		if err != nil {
			return err
		}
		if number != *expected {
			return fmt.Errorf("a watch delivered patch %d, expected %d", number, *expected)
		}
		*expected++
		now := int64(time.Since(d.began))
		*latencies = append(*latencies, float64(now-d.sent[number].Load())/1e9)
		if version := format.revision(event); len(version) > 0 && string(version) != *revision {
			*revision = string(version)
		}
		d.last.Store(now)
		d.seen.Add(1)
	}
}
