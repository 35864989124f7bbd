package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// runInformer fills a shared informer from the byte server, with the same indexes and handler as our informer.
func runInformer(args []string) (cell, error) {
	set := flag.NewFlagSet("informer", flag.ContinueOnError)
	url := set.String("url", "", "URL of the byte server")
	ca := set.String("ca", "", "its certificate")
	kind := set.String("kind", "databases", "databases or pods")
	objects := set.Int("objects", 0, "number of objects")
	events := set.Int("events", 0, "number of changes")
	list := set.Bool("list", false, "list and watch instead of WatchList")
	reads := set.Bool("reads", false, "measure lists from the cache")
	relist := set.Bool("relist", false, "measure the memory during a relist")
	others := set.Int("others", 0, "number of custom resources that the server serves besides")
	latency := set.Bool("latency", false, "measure the time from the sending of a change to its worker")
	if err := parse(set, args); err != nil {
		return nil, err
	}
	// client-go reads this variable.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", fmt.Sprint(!*list)); err != nil {
		return nil, err
	}
	client, example, err := restClient(*url, *ca, *kind)
	if err != nil {
		return nil, err
	}

	before, began := anonymousMemory(), time.Now()
	informer, err := newInformer(client, *kind, "", example)
	if err != nil {
		return nil, err
	}
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "bench"})
	var added atomic.Int64
	var firstChange atomic.Pointer[time.Time]
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { added.Add(1) },
		UpdateFunc: func(old, new any) {
			before, after := old.(metav1.Object), new.(metav1.Object)
			if firstChange.Load() == nil {
				now := time.Now()
				firstChange.CompareAndSwap(nil, &now)
			}
			if before.GetResourceVersion() != after.GetResourceVersion() && after.GetLabels()["bench.example.com/ignored"] == "" {
				queue.Add(after.GetNamespace() + "/" + after.GetName())
			}
		},
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, err
	}
	stop := make(chan struct{})
	defer close(stop)
	go informer.Run(stop)
	var further []cache.SharedIndexInformer
	if *others > 0 {
		if further, err = runOthers(*url, *ca, *kind, stop); err != nil {
			return nil, err
		}
	}
	for !registration.HasSynced() || added.Load() < int64(*objects) {
		time.Sleep(time.Millisecond)
	}
	for _, other := range further {
		cache.WaitForCacheSync(stop, other.HasSynced)
	}
	seconds, processor := time.Since(began).Seconds(), cpuSeconds()
	result := cell{"seconds": seconds, "peak": peakMemory(), "processor": processor}
	workOff := func() {
		for range *events {
			key, _ := queue.Get()
			queue.Done(key)
		}
	}

	switch {
	case *reads:
		listed, began := 0, time.Now()
		for range 10 {
			listed += len(informer.GetStore().List())
		}
		if listed != 10**objects {
			return nil, fmt.Errorf("%d objects listed", listed)
		}
		result["list_typed_warm_ns"] = float64(time.Since(began).Nanoseconds()) / 10
	case *latency:
		var latencies []float64
		for range *events {
			key, _ := queue.Get()
			if object, found, _ := informer.GetStore().GetByKey(key); found {
				sent, _ := strconv.ParseInt(object.(metav1.Object).GetResourceVersion(), 10, 64)
				latencies = append(latencies, float64(time.Now().UnixMicro()-sent)/1e6)
			}
			queue.Done(key)
		}
		slices.Sort(latencies)
		result["latency_50"] = latencies[(len(latencies)-1)*50/100]
		result["latency_99"] = latencies[(len(latencies)-1)*99/100]
	case *relist:
		time.Sleep(settled)
		result["steady"] = residentMemory()
		resetPeak()
		workOff()
		time.Sleep(settled)
		result["relist_peak"] = peakMemory()
	case *events > 0:
		workOff()
		result["rate"] = float64(*events) / time.Since(*firstChange.Load()).Seconds()
		result["processor_each"] = (cpuSeconds() - processor) / float64(*events)
	default:
		time.Sleep(settled)
		result["kept"] = anonymousMemory() - before
		result["bytes_per_object"] = result["kept"] / float64(*objects)
		// The live memory. Real programs do not force a collection.
		debug.FreeOSMemory()
		result["collected_bytes_per_object"] = (anonymousMemory() - before) / float64(*objects)
	}
	return result, nil
}

func newInformer(client rest.Interface, kind, selector string, example runtime.Object) (cache.SharedIndexInformer, error) {
	source := cache.NewFilteredListWatchFromClient(client, kind, metav1.NamespaceAll, func(options *metav1.ListOptions) {
		options.LabelSelector = selector
	})
	informer := cache.NewSharedIndexInformer(source, example, 0, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"app":                byLabel,
	})
	// Users of controller-runtime do this to save memory; our informer always does.
	return informer, informer.SetTransform(dropManagedFields)
}

// runOthers watches the other objects of the server, each twenty-ninth part in an informer, and two parts of the objects of the kind.
func runOthers(url, ca, kind string, stop <-chan struct{}) ([]cache.SharedIndexInformer, error) {
	var informers []cache.SharedIndexInformer
	run := func(kind string, parts, of int) error {
		client, example, err := restClient(url, ca, kind)
		if err != nil {
			return err
		}
		for part := range parts {
			informer, err := newInformer(client, kind, fmt.Sprintf("part=%d.%d", part, of), example)
			if err != nil {
				return err
			}
			go informer.Run(stop)
			informers = append(informers, informer)
		}
		return nil
	}
	if err := run("databases", 29, 29); err != nil {
		return nil, err
	}
	return informers, run(kind, 2, 50)
}

// settled is the time after which memory is measured as steady.
const settled = time.Second

func restClient(url, ca, kind string) (rest.Interface, runtime.Object, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config := &rest.Config{
		Host: url,
		// Disable the rate limit of the client, which is not measured.
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: ca},
		ContentConfig:   rest.ContentConfig{NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion()},
	}
	var example runtime.Object
	switch kind {
	case "databases":
		scheme.AddKnownTypes(databases, &Database{}, &DatabaseList{})
		metav1.AddToGroupVersion(scheme, databases)
		config.APIPath, config.GroupVersion, example = "/apis", &databases, &Database{}
	case "pods":
		if err := corev1.AddToScheme(scheme); err != nil {
			return nil, nil, err
		}
		config.APIPath, config.GroupVersion, example = "/api", &corev1.SchemeGroupVersion, &corev1.Pod{}
	default:
		return nil, nil, fmt.Errorf("unknown kind: %s", kind)
	}
	client, err := rest.RESTClientFor(config)
	return client, example, err
}

func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func byLabel(object any) ([]string, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	return []string{accessor.GetLabels()["app.kubernetes.io/name"]}, nil
}
