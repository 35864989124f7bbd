package main

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// updated is the number of objects of a kind that are updated in turn.
const updated = 100

const (
	// applied is the number of fields that an apply sets.
	applied = 200
	// applies is the number of applies that are measured.
	applies = 4000
)

// loadUpdates updates objects of five kinds and follows the server's memory.
func (r *run) loadUpdates() error {
	client, err := dial(r.config, true)
	if err != nil {
		return err
	}
	if err := r.createNamespace(client); err != nil {
		return err
	}
	if err := r.createCRDs(client, 1); err != nil {
		return err
	}
	clients, err := dialAll(r.config, workers)
	if err != nil {
		return err
	}
	kinds := updatedKinds()
	name := func(n int) string { return fmt.Sprintf("updated-%d", n) }
	create := func(worker, n int) error {
		kind := kinds[n%len(kinds)]
		object := kind.object(n / len(kinds))
		object["metadata"] = tree{"name": name(n / len(kinds)), "labels": tree{"group": "updated"}}
		_, err := clients[worker].do(request{method: http.MethodPost, path: kind.path, body: encode(object)})
		return err
	}
	if _, _, err := parallel("create", updated*len(kinds), workers, create); err != nil {
		return err
	}
	if err := r.applyInTurns(clients); err != nil {
		return err
	}
	r.settle(2*time.Second, "memory before the updates")
	r.memory("before")

	memory := follow(r.server, r.options.updates)
	err = r.measure("update", r.options.updates, workers, func(worker, n int) error {
		kind, object := kinds[n%len(kinds)], n/len(kinds)%updated
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%08d"}}}`, n)
		path := kind.path + "/" + name(object)
		_, err := clients[worker].do(request{method: http.MethodPatch, path: path, contentType: mergePatch, body: body})
		memory.count(n)
		return err
	})
	if err != nil {
		return err
	}
	r.memory("after")
	r.result["slope"] = memory.slope()
	if r.options.updates >= 1_000_000 {
		r.result["slope_million"] = r.result["slope"]
	}
	say("memory grew by %.1f bytes an update in the second half", r.result["slope"])
	return nil
}

// applyInTurns lets two managers apply all fields of the same objects in turn. Each apply changes one field and takes it
// from the other manager.
func (r *run) applyInTurns(clients []*client) error {
	return r.measure("apply", applies, workers, func(worker, n int) error {
		data := make(map[string]string, applied)
		for field := range applied {
			data[fmt.Sprintf("field-%d", field)] = "value"
		}
		data[fmt.Sprintf("field-%d", n%applied)] = fmt.Sprint(n)
		object := tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{"name": fmt.Sprintf("applied-%d", worker)}, "data": data}
		path := fmt.Sprintf("%s/applied-%d?force=true&fieldManager=manager-%d", configMaps, worker, n%2)
		_, err := clients[worker].do(request{method: http.MethodPatch, path: path, contentType: applyPatch, body: encode(object)})
		return err
	})
}

type updatedKind struct {
	path   string
	object func(number int) tree
}

func updatedKinds() []updatedKind {
	custom := definitionAt(0)
	kind := func(path, apiVersion, kind string, rest func(number int) tree) updatedKind {
		return updatedKind{path, func(number int) tree {
			object := rest(number)
			object["apiVersion"], object["kind"] = apiVersion, kind
			return object
		}}
	}
	pods := tree{
		"metadata": tree{"labels": tree{"app": "bench"}},
		"spec":     tree{"containers": []tree{{"name": "main", "image": "registry.example.com/app:1.0", "ports": []tree{{"containerPort": 8080}}}}},
	}
	const namespaced = "/namespaces/" + namespace
	return []updatedKind{
		kind(configMaps, "v1", "ConfigMap", func(n int) tree { return tree{"data": configMap(n).Data} }),
		kind("/api/v1"+namespaced+"/secrets", "v1", "Secret", func(n int) tree { return tree{"stringData": configMap(n).Data} }),
		kind("/apis/coordination.k8s.io/v1"+namespaced+"/leases", "coordination.k8s.io/v1", "Lease", func(int) tree {
			return tree{"spec": tree{"holderIdentity": "bench", "leaseDurationSeconds": 15}}
		}),
		kind("/apis/apps/v1"+namespaced+"/deployments", "apps/v1", "Deployment", func(int) tree {
			return tree{"spec": tree{"replicas": 1, "selector": tree{"matchLabels": tree{"app": "bench"}}, "template": pods}}
		}),
		kind(custom.path(), custom.group+"/v1", custom.kind, custom.custom),
	}
}

// growth is memory by the number of updates.
type growth struct {
	server processes
	every  int
	mutex  sync.Mutex
	points [][2]float64
}

// follow takes about two hundred samples.
func follow(server processes, updates int) *growth {
	return &growth{server: server, every: max(1, updates/200)}
}

// count takes a sample if it is time for one.
func (g *growth) count(number int) {
	if number%g.every != 0 {
		return
	}
	resident := g.server.resident()
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.points = append(g.points, [2]float64{float64(number), resident})
}

// slope returns the bytes that memory grows for an update, by least squares over the second half.
func (g *growth) slope() float64 {
	points := g.points[len(g.points)/2:]
	var x, y float64
	for _, point := range points {
		x, y = x+point[0], y+point[1]
	}
	x, y = x/float64(len(points)), y/float64(len(points))
	var above, below float64
	for _, point := range points {
		above += (point[0] - x) * (point[1] - y)
		below += (point[0] - x) * (point[0] - x)
	}
	if below == 0 {
		return 0
	}
	return above / below
}
