package main

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tree is a JSON object.
type tree = map[string]any

func encode(value any) []byte {
	bytes, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return bytes
}

// groups is the number of values of the label `group`.
const groups = 100

// text is a line of about 90 bytes that differs from object to object.
func text(number int) string {
	words := []string{"listen", "upstream", "timeout", "retries", "payments", "ledger", "region", "primary"}
	var line strings.Builder
	for n := range 8 {
		number = (number*1103515245 + 12345 + n) & 0x7fffffff
		fmt.Fprintf(&line, "%s=%d;", words[(number>>8)%len(words)], number%9973)
	}
	return line.String()
}

// configMap is an object of about 1.2 KB when it is stored.
func configMap(number int) *corev1.ConfigMap {
	data := map[string]string{"n": "00000000"}
	for n := range 7 {
		data[fmt.Sprintf("part-%d.properties", n)] = text(number*7 + n)
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("config-%06d", number),
			Labels: map[string]string{
				"app.kubernetes.io/name": "payments", "app.kubernetes.io/managed-by": "bench",
				"group": fmt.Sprintf("g-%d", number%groups),
			},
			Annotations: map[string]string{"example.com/team": "payments-and-ledger"},
		},
		Data: data,
	}
}

// definition names a CRD: its group and its kind.
type definition struct{ group, kind, plural string }

// definitionAt returns the CRD with a number; twenty share a group.
func definitionAt(number int) definition {
	kind := fmt.Sprintf("Database%d", number)
	return definition{fmt.Sprintf("g%d.bench.example.com", number/20), kind, strings.ToLower(kind) + "s"}
}

func (d definition) name() string { return d.plural + "." + d.group }

func (d definition) path() string {
	return "/apis/" + d.group + "/v1/namespaces/" + namespace + "/" + d.plural
}

// crd is a CRD with a status, a column, and a schema of about forty fields as operators have them. No two CRDs have the
// same texts, so that a server cannot keep one schema for all.
func (d definition) crd() tree {
	about := func(schema tree, description string) tree {
		schema["description"] = description + " Changes of a " + d.kind + " are rolled out one member after the other."
		return schema
	}
	str := func(description string) tree { return about(tree{"type": "string"}, description) }
	choice := func(description, fallback string, values ...string) tree {
		return about(tree{"type": "string", "enum": values, "default": fallback}, description)
	}
	number := func(description string, least, most int) tree {
		return about(tree{"type": "integer", "format": "int32", "minimum": least, "maximum": most}, description)
	}
	flag := func(description string) tree { return about(tree{"type": "boolean"}, description) }
	quantity := func(description string) tree {
		return about(tree{"anyOf": []tree{{"type": "integer"}, {"type": "string"}}, "x-kubernetes-int-or-string": true}, description)
	}
	object := func(description string, properties tree, required ...string) tree {
		schema := tree{"type": "object", "properties": properties}
		if len(required) > 0 {
			schema["required"] = required
		}
		return about(schema, description)
	}
	condition := object("A condition of the database.", tree{
		"type":               about(tree{"type": "string", "maxLength": 316}, "The type of the condition."),
		"status":             about(tree{"type": "string", "enum": []string{"True", "False", "Unknown"}}, "Its status."),
		"reason":             about(tree{"type": "string", "maxLength": 1024, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"}, "A reason, in one word."),
		"message":            about(tree{"type": "string", "maxLength": 32768}, "A message for people."),
		"observedGeneration": about(tree{"type": "integer", "format": "int64", "minimum": 0}, "The generation it is about."),
		"lastTransitionTime": about(tree{"type": "string", "format": "date-time"}, "When the status changed."),
	}, "type", "status")
	spec := object("The desired state of the database.", tree{
		"for" + d.kind: str("A field of this kind only."),
		"version":      about(tree{"type": "string", "pattern": "^[0-9]+\\.[0-9]+$"}, "The version of the engine."),
		"engine":       choice("The engine.", "postgres", "postgres", "mysql", "mariadb"),
		"replicas":     number("The number of members.", 1, 99),
		"image":        str("The image of the members."),
		"paused":       flag("Stops the operator from changing anything."),
		"storage": object("The storage of each member.", tree{
			"size": quantity("The size."), "class": str("The storage class."), "encrypted": flag("Whether it is encrypted."),
			"reclaim": choice("What happens to it at deletion.", "Retain", "Retain", "Delete"),
		}, "size"),
		"resources": object("The resources of each member.", tree{
			"cpu": quantity("The processors."), "memory": quantity("The memory."), "hugePages": quantity("The huge pages."),
		}),
		"backup": object("The backups.", tree{
			"schedule": str("When, as in cron."), "retentionDays": number("How long they are kept.", 1, 3650),
			"bucket": str("Where they go."), "prefix": str("The prefix of their names."),
			"secretRef": object("The credentials.", tree{"name": str("The name of the secret."), "key": str("The key in it.")}, "name"),
		}),
		"users": about(tree{
			"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []string{"name"},
			"items": object("A user.", tree{
				"name": str("The name."), "role": choice("The role.", "reader", "reader", "writer", "owner"),
				"databases": about(tree{"type": "array", "items": tree{"type": "string"}}, "The databases."),
			}, "name"),
		}, "The users."),
		"parameters":   about(tree{"type": "object", "additionalProperties": tree{"type": "string"}}, "Parameters of the engine."),
		"nodeSelector": about(tree{"type": "object", "additionalProperties": tree{"type": "string"}}, "The nodes for members."),
		"maintenance": object("When disruptive changes are made.", tree{
			"day":   choice("The day of the week.", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
			"hour":  number("The hour, in UTC.", 0, 23),
			"hours": number("How long.", 1, 24),
		}),
	}, "version", "replicas")
	status := object("The observed state of the database.", tree{
		"phase": str("The phase."), "readyReplicas": number("The number of ready members.", 0, 99),
		"observedGeneration": about(tree{"type": "integer", "format": "int64"}, "The generation that was seen last."),
		"endpoint":           str("The address of the primary."),
		"conditions": about(tree{
			"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []string{"type"}, "items": condition,
		}, "The conditions."),
	})
	return tree{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": tree{"name": d.name()},
		"spec": tree{
			"group": d.group, "scope": "Namespaced",
			"names": tree{"kind": d.kind, "listKind": d.kind + "List", "plural": d.plural, "singular": strings.ToLower(d.kind)},
			"versions": []tree{{
				"name": "v1", "served": true, "storage": true,
				"schema": tree{"openAPIV3Schema": object("A database, run by an operator.", tree{
					"apiVersion": str("The version of the schema."), "kind": str("The kind."),
					"metadata": tree{"type": "object"}, "spec": spec, "status": status,
				})},
				"subresources":             tree{"status": tree{}},
				"additionalPrinterColumns": []tree{{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}},
			}},
		},
	}
}

// custom is an object of a CRD, of about 1.2 KB when it is stored.
func (d definition) custom(number int) tree {
	return tree{
		"apiVersion": d.group + "/v1", "kind": d.kind,
		"metadata": tree{
			"name":        fmt.Sprintf("database-%06d", number),
			"labels":      tree{"app.kubernetes.io/name": "payments", "group": fmt.Sprintf("g-%d", number%groups)},
			"annotations": tree{"n": "00000000"},
		},
		"spec": tree{
			"version": "16.2", "replicas": 3, "image": "registry.example.com/databases/postgres:16.2-bookworm",
			"storage":   tree{"size": "20Gi", "class": "fast", "encrypted": true},
			"resources": tree{"cpu": "500m", "memory": "2Gi"},
			"backup": tree{
				"schedule": "0 3 * * *", "retentionDays": 30, "bucket": "backups-" + text(number),
				"secretRef": tree{"name": "backup-credentials", "key": "token"},
			},
			"users": []tree{
				{"name": "app", "role": "writer", "databases": []string{"payments", "ledger"}},
				{"name": "reports", "databases": []string{"payments"}},
			},
			"parameters":  tree{"shared_buffers": "512MB", "max_connections": "200", "work_mem": text(number + 1)},
			"maintenance": tree{"hour": 4, "hours": 2},
		},
	}
}
