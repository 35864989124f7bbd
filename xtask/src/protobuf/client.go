// A typed client of client-go in protobuf: writes, reads, lists and watches, compared with the same client in JSON.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = "application/vnd.kubernetes.protobuf"

var (
	ctx       = context.Background()
	namespace = fmt.Sprintf("typed-%d", time.Now().UnixNano())
)

// recorder counts the media types of replies.
type recorder struct {
	next   http.RoundTripper
	lock   sync.Mutex
	counts map[string]int
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil {
		r.lock.Lock()
		defer r.lock.Unlock()
		r.counts[response.Header.Get("Content-Type")]++
	}
	return response, err
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func expect(holds bool, format string, args ...any) {
	if !holds {
		panic(fmt.Sprintf(format, args...))
	}
}

// same compares an object that was read in protobuf with the object in JSON.
func same(name string, binary, text any) {
	expect(equality.Semantic.DeepEqual(binary, text), "%s differs:\nprotobuf %+v\nJSON     %+v", name, binary, text)
	fmt.Println(name, "ok")
}

func main() {
	config := must(clientcmd.BuildConfigFromFlags("", os.Args[1]))
	config.QPS, config.Burst = -1, 1000
	text := kubernetes.NewForConfigOrDie(config)
	seen := &recorder{counts: map[string]int{}}
	typed := rest.CopyConfig(config)
	typed.ContentType = protobuf
	typed.AcceptContentTypes = protobuf + ",application/json"
	typed.Wrap(func(next http.RoundTripper) http.RoundTripper { seen.next = next; return seen })
	binary := kubernetes.NewForConfigOrDie(typed)

	must(binary.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}))
	defer func() { check(binary.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})) }()
	objects(binary, text)
	workloads(binary, text)
	watches(binary)
	informer(binary)
	lists(binary, text)
	metadataOnly(typed)
	discovery(binary, text)

	for mediaType, count := range seen.counts {
		fmt.Println(count, "replies in", mediaType)
		expect(strings.HasPrefix(mediaType, protobuf) || strings.Contains(mediaType, "APIGroupDiscoveryList") || mediaType == "application/json" && count <= 2,
			"%d replies in %s", count, mediaType)
	}
}

func objects(binary, text *kubernetes.Clientset) {
	maps := binary.CoreV1().ConfigMaps(namespace)
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "1"}},
		Data:       map[string]string{"key": "välue \"quoted\"\n"}, BinaryData: map[string][]byte{"raw": {0, 255}, "none": {}},
	}
	created := must(maps.Create(ctx, config, metav1.CreateOptions{}))
	expect(created.UID != "" && equality.Semantic.DeepEqual(created.Data, config.Data), "created %+v", created)
	created.Data["more"] = "x"
	must(maps.Update(ctx, created, metav1.UpdateOptions{}))
	patched := must(maps.Patch(ctx, "a", types.StrategicMergePatchType, []byte(`{"data":{"more":null}}`), metav1.PatchOptions{}))
	expect(len(patched.Data) == 1, "patched %+v", patched)
	same("ConfigMap", must(maps.Get(ctx, "a", metav1.GetOptions{})), must(text.CoreV1().ConfigMaps(namespace).Get(ctx, "a", metav1.GetOptions{})))

	_, err := maps.Create(ctx, config, metav1.CreateOptions{})
	expect(errors.IsAlreadyExists(err), "a second create: %v", err)
	_, err = maps.Get(ctx, "none", metav1.GetOptions{})
	expect(errors.IsNotFound(err), "a missing object: %v", err)
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "A"}}, metav1.CreateOptions{})
	expect(errors.IsInvalid(err), "an invalid object: %v", err)

	moment := metav1.NewMicroTime(time.Unix(1700000000, 123456000))
	holder, seconds := "me", int32(15)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &moment,
	}}
	leased := must(binary.CoordinationV1().Leases(namespace).Create(ctx, lease, metav1.CreateOptions{}))
	expect(leased.Spec.RenewTime.Equal(&moment), "the time of the lease is %v", leased.Spec.RenewTime)
	same("Lease", leased, must(text.CoordinationV1().Leases(namespace).Get(ctx, "a", metav1.GetOptions{})))

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"a": "1"},
		Ports:    []corev1.ServicePort{{Name: "one", Port: 80, TargetPort: intstr.FromString("http")}, {Name: "two", Port: 81, TargetPort: intstr.FromInt32(8081)}},
	}}
	same("Service", must(binary.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{})), must(text.CoreV1().Services(namespace).Get(ctx, "a", metav1.GetOptions{})))
	check(maps.Delete(ctx, "a", *metav1.NewPreconditionDeleteOptions(string(created.UID))))
}

func workloads(binary, text *kubernetes.Clientset) {
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.5"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: "nginx", Resources: corev1.ResourceRequirements{Limits: limits},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}},
				EnvFrom:       []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}},
			}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	none := int32(0)
	deployments := binary.AppsV1().Deployments(namespace)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: appsv1.DeploymentSpec{
		Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, Template: template,
	}}
	must(deployments.Create(ctx, deployment, metav1.CreateOptions{}))
	scale := must(deployments.GetScale(ctx, "a", metav1.GetOptions{}))
	scale.Spec.Replicas = 2
	scaled := must(deployments.UpdateScale(ctx, "a", &autoscalingv1.Scale{ObjectMeta: scale.ObjectMeta, Spec: scale.Spec}, metav1.UpdateOptions{}))
	expect(scaled.Spec.Replicas == 2, "scaled %+v", scaled)
	applied := must(deployments.Apply(ctx, appsapply.Deployment("a", namespace).WithLabels(map[string]string{"by": "apply"}), metav1.ApplyOptions{FieldManager: "typed"}))
	expect(applied.Labels["by"] == "apply", "applied %+v", applied)
	// Controllers of a real server may write the status meanwhile.
	one := must(deployments.Get(ctx, "a", metav1.GetOptions{}))
	if other := must(text.AppsV1().Deployments(namespace).Get(ctx, "a", metav1.GetOptions{})); other.ResourceVersion == one.ResourceVersion {
		same("Deployment", one, other)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: template.Spec}
	pods := binary.CoreV1().Pods(namespace)
	_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if errors.IsForbidden(err) {
		// Pods of a real server wait for the service account.
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		_, _ = binary.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
		_, err = pods.Create(ctx, pod, metav1.CreateOptions{})
	}
	check(err)
	same("Pod", must(pods.Get(ctx, "a", metav1.GetOptions{})), must(text.CoreV1().Pods(namespace).Get(ctx, "a", metav1.GetOptions{})))
}

func watches(binary *kubernetes.Clientset) {
	secrets := binary.CoreV1().Secrets(namespace)
	from := must(secrets.List(ctx, metav1.ListOptions{})).ResourceVersion
	events := must(secrets.Watch(ctx, metav1.ListOptions{ResourceVersion: from}))
	defer events.Stop()
	secret := must(secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}))
	secret.Data = map[string][]byte{"k": []byte("v")}
	secret = must(secrets.Update(ctx, secret, metav1.UpdateOptions{}))
	check(secrets.Delete(ctx, "a", metav1.DeleteOptions{}))
	for _, expected := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		event := <-events.ResultChan()
		found, is := event.Object.(*corev1.Secret)
		expect(event.Type == expected && is && found.Name == "a", "expected %s, found %+v", expected, event)
		if expected == watch.Modified {
			same("Secret of a watch", found, secret)
		}
	}
	old := must(secrets.Watch(ctx, metav1.ListOptions{ResourceVersion: "1"}))
	defer old.Stop()
	event := <-old.ResultChan()
	expect(event.Type == watch.Error && errors.IsResourceExpired(errors.FromObject(event.Object)), "of an old revision: %+v", event)
}

func informer(binary *kubernetes.Clientset) {
	factory := informers.NewSharedInformerFactoryWithOptions(binary, 0, informers.WithNamespace(namespace))
	shared := factory.Core().V1().ConfigMaps().Informer()
	added := make(chan string, 100)
	must(shared.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) { added <- object.(*corev1.ConfigMap).Name }}))
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	expect(cache.WaitForCacheSync(stop, shared.HasSynced), "the informer has not synced")
	must(binary.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "informed"}}, metav1.CreateOptions{}))
	for deadline := time.After(20 * time.Second); ; {
		select {
		case name := <-added:
			if name == "informed" {
				fmt.Println("informer ok")
				return
			}
		case <-deadline:
			panic("the informer has not seen the object")
		}
	}
}

func lists(binary, text *kubernetes.Clientset) {
	maps := binary.CoreV1().ConfigMaps(namespace)
	for n := range 300 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("list-%03d", n)}, Data: map[string]string{"text": strings.Repeat("0123456789", n*10)}}
		must(maps.Create(ctx, object, metav1.CreateOptions{}))
	}
	all := must(maps.List(ctx, metav1.ListOptions{}))
	exact := metav1.ListOptions{ResourceVersion: all.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	same("ConfigMapList", all, must(text.CoreV1().ConfigMaps(namespace).List(ctx, exact)))
	exact.Limit = 100
	seen := 0
	for {
		page := must(maps.List(ctx, exact))
		seen += len(page.Items)
		if page.Continue == "" {
			break
		}
		exact = metav1.ListOptions{Limit: 100, Continue: page.Continue}
	}
	expect(seen == len(all.Items), "%d of %d objects in pages", seen, len(all.Items))
	check(maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

func metadataOnly(config *rest.Config) {
	client := must(metadata.NewForConfig(config)).Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(namespace)
	one := must(client.Get(ctx, "a", metav1.GetOptions{}))
	expect(one.Name == "a" && one.UID != "", "metadata %+v", one)
	list := must(client.List(ctx, metav1.ListOptions{}))
	expect(len(list.Items) == 1 && list.ResourceVersion != "", "metadata of a list %+v", list)
	events := must(client.Watch(ctx, metav1.ListOptions{}))
	defer events.Stop()
	event := <-events.ResultChan()
	expect(event.Type == watch.Added && event.Object.(*metav1.PartialObjectMetadata).Name == "a", "metadata of a watch %+v", event)
	fmt.Println("metadata ok")
}

func discovery(binary, text *kubernetes.Clientset) {
	for _, version := range []string{"v1", "apps/v1"} {
		// Only JSON has the kind of the list.
		same("discovery of "+version, must(binary.Discovery().ServerResourcesForGroupVersion(version)).APIResources,
			must(text.Discovery().ServerResourcesForGroupVersion(version)).APIResources)
	}
	must(binary.Discovery().ServerGroups())
}
