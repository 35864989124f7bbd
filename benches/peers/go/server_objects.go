package main

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	protobufserializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

const (
	namespace  = "bench"
	configMaps = "/api/v1/namespaces/" + namespace + "/configmaps"
	// workers is the number of clients that write and read at once, each with a connection.
	workers = 64
)

func (r *run) createNamespace(client *client) error {
	body := encode(tree{"apiVersion": "v1", "kind": "Namespace", "metadata": tree{"name": namespace}})
	_, err := client.do(request{method: http.MethodPost, path: "/api/v1/namespaces", body: body})
	return err
}

// loadObjects creates CRDs and objects, and reads them.
func (r *run) loadObjects() error {
	r.settle(3*time.Second, "memory at rest")
	rest := r.memory("rest")
	usual, err := dial(r.config, true)
	if err != nil {
		return err
	}
	plain, err := dial(r.config, false)
	if err != nil {
		return err
	}
	if err := r.createNamespace(usual); err != nil {
		return err
	}
	if err := r.createCRDs(usual, r.options.crds); err != nil {
		return err
	}
	r.settle(5*time.Second, "memory of CRDs")
	r.result["crd_each"] = (r.memory("after_crds") - rest) / float64(r.options.crds)

	clients, err := dialAll(r.config, workers)
	if err != nil {
		return err
	}
	bodies := make([][]byte, r.options.objects)
	for n := range bodies {
		bodies[n] = encode(configMap(n))
	}
	create := func(path string, bodies [][]byte, contentType string) func(worker, n int) error {
		return func(worker, n int) error {
			_, err := clients[worker].do(request{method: http.MethodPost, path: path, body: bodies[n], contentType: contentType, accept: accept(contentType)})
			return err
		}
	}
	if err := r.measure("create", len(bodies), workers, create(configMaps, bodies, jsonType)); err != nil {
		return err
	}
	r.settle(2*time.Second, "memory after the creates")
	r.memory("filled")
	if err := r.readObjects(usual, plain, clients); err != nil {
		return err
	}
	r.settle(3*time.Second, "memory at the end")
	r.memory("end")

	if bodies, err = protobufs(r.options.objects / 5); err != nil {
		return err
	}
	if err := r.measure("create_typed", len(bodies), workers, create(configMaps, bodies, protobuf)); err != nil {
		return err
	}
	return r.editCRD(usual, clients)
}

// accept returns what a client that sends a type accepts.
func accept(contentType string) string {
	if contentType == protobuf {
		return typed
	}
	return jsonType
}

// protobufs returns the bodies that typed clients send to create ConfigMaps.
func protobufs(count int) ([][]byte, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	serializer := protobufserializer.NewSerializer(scheme, scheme)
	bodies := make([][]byte, count)
	for n := range bodies {
		object := configMap(n)
		object.Name = fmt.Sprintf("typed-%06d", n)
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		var body bytes.Buffer
		if err := serializer.Encode(object, &body); err != nil {
			return nil, err
		}
		bodies[n] = body.Bytes()
	}
	return bodies, nil
}

// readObjects lists, selects and gets the ConfigMaps.
func (r *run) readObjects(usual, plain *client, clients []*client) error {
	// get repeats a request, one after another or by workers, and notes the size of the reply.
	get := func(name string, times, workers int, by func(worker int) *client, ask func(n int) request) error {
		// Before the clock starts, once.
		first, err := by(0).do(ask(0))
		if err != nil {
			return err
		}
		r.result[name+"_bytes"] = float64(first.size)
		err = r.measure(name, times, workers, func(worker, n int) error {
			reply, err := by(worker).do(ask(n))
			if err == nil && reply.size*10 < first.size*9 {
				err = fmt.Errorf("a reply of %d bytes, after one of %d", reply.size, first.size)
			}
			return err
		})
		if by(0) == plain {
			r.result[name+"_zipped"] = notAsked
		}
		return err
	}
	always := func(one *client) func(int) *client { return func(int) *client { return one } }
	list := func(int) request { return request{path: configMaps} }
	listTyped := func(int) request { return request{path: configMaps, accept: typed} }
	pick := func(n int) request {
		return request{path: fmt.Sprintf("%s?labelSelector=group%%3Dg-%d", configMaps, n%groups)}
	}
	one := func(n int) request {
		return request{path: fmt.Sprintf("%s/config-%06d", configMaps, n*7919%r.options.objects)}
	}
	oneTyped := func(n int) request {
		ask := one(n)
		ask.accept = typed
		return ask
	}
	spread := func(worker int) *client { return clients[worker] }
	const lists, selects, gets = 20, 400, 20_000
	return first(
		func() error { return get("list", lists, 1, always(usual), list) },
		func() error { return get("list_plain", lists, 1, always(plain), list) },
		func() error { return get("list_typed", lists, 1, always(usual), listTyped) },
		func() error { return get("list_typed_plain", lists, 1, always(plain), listTyped) },
		func() error { return get("select", selects, 1, always(usual), pick) },
		func() error { return get("select_plain", selects, 1, always(plain), pick) },
		func() error { return get("select_loaded", 2*selects, 16, spread, pick) },
		func() error { return get("get", gets, workers, spread, one) },
		func() error { return get("get_typed", gets, workers, spread, oneTyped) },
		func() error { return get("get_shared", gets, workers, always(usual), one) },
	)
}

// first runs steps up to the first that fails.
func first(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// editCRD lists custom resources before and after edits of their CRD.
func (r *run) editCRD(client *client, clients []*client) error {
	kind := definitionAt(0)
	bodies := make([][]byte, r.options.objects)
	for n := range bodies {
		bodies[n] = encode(kind.custom(n))
	}
	create := func(worker, n int) error {
		_, err := clients[worker].do(request{method: http.MethodPost, path: kind.path(), body: bodies[n]})
		return err
	}
	if err := r.measure("create_custom", len(bodies), workers, create); err != nil {
		return err
	}
	read := func(name string) error {
		// The first list is apart: it may fill caches that the next ones use.
		list := func(int, int) error { _, err := client.do(request{path: kind.path()}); return err }
		get := func(_, n int) error {
			_, err := client.do(request{path: fmt.Sprintf("%s/database-%06d", kind.path(), n*7919%r.options.objects)})
			return err
		}
		return first(
			func() error { return r.measure(name+"_first", 1, 1, list) },
			func() error { return r.measure(name, 10, 1, list) },
			func() error { return r.measure(name+"_get", 2000, 1, get) },
		)
	}
	const at = "/spec/versions/0/schema/openAPIV3Schema"
	edit := func(change tree) error {
		_, err := client.do(request{
			method: http.MethodPatch, path: definitions + "/" + kind.name(), contentType: jsonPatch, body: encode([]tree{change}),
		})
		return err
	}
	describe := tree{"op": "replace", "path": at + "/description", "value": "A database, described in other words."}
	extend := tree{
		"op": "add", "path": at + "/properties/spec/properties/tier",
		"value": tree{"type": "string", "default": "standard", "description": "A field that the objects lack."},
	}
	return first(
		func() error { return read("custom") },
		func() error { return edit(describe) },
		func() error { r.settle(time.Second, "the edited description"); return nil },
		func() error { return waitServed(client, kind.path()+"/database-000000", "") },
		func() error { return read("described") },
		func() error { return edit(extend) },
		func() error { return waitServed(client, kind.path()+"/database-000000", `"tier":"standard"`) },
		func() error { return read("extended") },
		func() error { r.settle(time.Second, "memory after the edits"); r.memory("edited"); return nil },
	)
}

// waitServed waits until an object is served with a text, after an edit of its CRD. The real server answers 429 for a
// while, and the former schema before that.
func waitServed(client *client, path, text string) error {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		reply, err := client.do(request{path: path, keep: true})
		if err == nil && bytes.Contains(reply.body, []byte(text)) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not served with %q 30 s after the edit of its CRD: %w", path, text, err)
		}
	}
}
