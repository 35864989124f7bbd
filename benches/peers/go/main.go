// Command peer runs the benchmarks with client-go and controller-runtime. A process is one run and prints one line of
// JSON, as ours does.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

// cell is the results of a run: named numbers.
type cell map[string]float64

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: peer queue|informer|reconcile|server [options]"))
	}
	runs := map[string]func([]string) (cell, error){"queue": runQueue, "informer": runInformer, "reconcile": runReconcile, "server": runServer}
	run, known := runs[os.Args[1]]
	if !known {
		fail(fmt.Errorf("unknown run: %s; use queue, informer, reconcile or server", os.Args[1]))
	}
	result, err := run(os.Args[2:])
	if err != nil {
		fail(err)
	}
	if _, said := result["peak"]; !said {
		result["peak"] = peakMemory()
	}
	line, err := json.Marshal(result)
	if err != nil {
		fail(err)
	}
	fmt.Println(string(line))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "peer:", err)
	os.Exit(1)
}

func parse(set *flag.FlagSet, args []string) error {
	set.SetOutput(os.Stderr)
	return set.Parse(args)
}
