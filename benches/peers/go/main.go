// Command peer does the benchmarks' work on client-go and controller-runtime: one run in a process of its own, one
// line of JSON on standard output, as our own runs print it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

// cell is what one run has measured: named numbers.
type cell map[string]float64

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("say what to run: queue or informer"))
	}
	runs := map[string]func([]string) (cell, error){"queue": runQueue, "informer": runInformer}
	run, known := runs[os.Args[1]]
	if !known {
		fail(fmt.Errorf("no such run: %s", os.Args[1]))
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
