package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	reconcileNamespace = "bench"
	reconcileWorkers   = 16
	reconcileRounds    = 20
)

// secretKeeper keeps a Secret for each ConfigMap.
type secretKeeper struct {
	crclient.Client
	began      time.Time
	once       sync.Once
	first      time.Duration
	reconciles atomic.Int64
	created    atomic.Int64
}

func (k *secretKeeper) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	k.once.Do(func() { k.first = time.Since(k.began) })
	var parent corev1.ConfigMap
	if err := k.Get(ctx, request.NamespacedName, &parent); err != nil {
		return ctrl.Result{}, crclient.IgnoreNotFound(err)
	}
	var child corev1.Secret
	err := k.Get(ctx, request.NamespacedName, &child)
	if apierrors.IsNotFound(err) {
		child = corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: request.Name, Namespace: request.Namespace},
			StringData: map[string]string{"text": request.Name},
		}
		if err := ctrl.SetControllerReference(&parent, &child, k.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		// The cache may lag behind the last reconcile of the key.
		err = k.Create(ctx, &child)
		if err == nil {
			k.created.Add(1)
		}
		err = crclient.IgnoreAlreadyExists(err)
	}
	k.reconciles.Add(1)
	return ctrl.Result{}, err
}

// runReconcile runs an operator of ConfigMaps that each own one Secret.
func runReconcile(args []string) (cell, error) {
	began := time.Now()
	set := flag.NewFlagSet("reconcile", flag.ContinueOnError)
	objects := set.Int64("objects", 0, "number of ConfigMaps")
	kubeconfig := set.String("kubeconfig", "", "the kubeconfig")
	_ = set.String("processes", "", "the processes of the server")
	if err := parse(set, args); err != nil {
		return nil, err
	}
	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return nil, err
	}
	// No limit of requests, as the others.
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{reconcileNamespace: {}}},
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	keeper := &secretKeeper{Client: manager.GetClient(), began: began}
	again := make(chan event.GenericEvent, 1024)
	err = ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}).
		Owns(&corev1.Secret{}).
		WatchesRawSource(source.Channel(again, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: reconcileWorkers}).
		Complete(keeper)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	until(func() bool { return keeper.created.Load() >= *objects })
	seconds, cpu, peak := time.Since(began).Seconds(), cpuSeconds(), peakMemory()

	before, round := cpuSeconds(), time.Now()
	for range reconcileRounds {
		wanted := keeper.reconciles.Load() + *objects
		for number := range *objects {
			name := types.NamespacedName{Namespace: reconcileNamespace, Name: fmt.Sprintf("object-%d", number)}
			meta := metav1.ObjectMeta{Namespace: name.Namespace, Name: strings.Clone(name.Name)}
			again <- event.GenericEvent{Object: &corev1.ConfigMap{ObjectMeta: meta}}
		}
		until(func() bool { return keeper.reconciles.Load() >= wanted })
	}
	roundSeconds, roundCPU := time.Since(round).Seconds(), cpuSeconds()-before
	stop()
	rounds := float64(*objects * reconcileRounds)
	return cell{
		"rate": float64(*objects) / seconds, "seconds": seconds, "peak": peak, "first": keeper.first.Seconds(),
		"processor_each": cpu / float64(*objects),
		"round_rate":     rounds / roundSeconds, "round_processor_each": roundCPU / rounds,
	}, <-ended
}

// until looks every millisecond, as the others do.
func until(done func() bool) {
	for !done() {
		time.Sleep(time.Millisecond)
	}
}
