// Package windlass asks the example `cel` of windlass-cel to compile and evaluate expressions.
package windlass

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// Object is a request.
type Object map[string]any

// Reply is the answer to a request.
type Reply struct {
	ID          int
	Error       string
	Output      string
	UsesOldSelf bool
	Min         string
	Max         string
	Cardinality string
	Failed      string
	Bool        bool
	Text        string
	Type        string
	Cost        string
	Value       json.RawMessage
	Issues      []Issue
}

// Issue is an error of an expression's text.
type Issue struct {
	Line    int
	Column  int
	Message string
}

// Number reads a number of a reply.
func Number(text string) uint64 {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return number
}

type float float64

// MarshalJSON writes the number with a fraction or an exponent.
func (f float) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(f), 'g', -1, 64)
	if !strings.ContainsAny(text, ".eIN") {
		text += ".0"
	}
	return []byte(text), nil
}

// Encode makes a value ready for JSON: floating-point numbers stay what they are.
func Encode(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, member := range value {
			out[name] = Encode(member)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = Encode(item)
		}
		return out
	case float64:
		return float(value)
	case float32:
		return float(value)
	default:
		return value
	}
}

var (
	lock sync.Mutex
	in   io.Writer
	out  *bufio.Reader
)

func start() {
	command := exec.Command(os.Getenv("WINDLASS_CEL_SERVER"))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		panic(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := command.Start(); err != nil {
		panic(fmt.Errorf("WINDLASS_CEL_SERVER: %w", err))
	}
	in, out = stdin, bufio.NewReaderSize(stdout, 1<<16)
}

// Call sends a request, and returns the reply.
func Call(operation string, request Object) Reply {
	lock.Lock()
	defer lock.Unlock()
	if in == nil {
		start()
	}
	request["op"] = operation
	buffer := bytes.Buffer{}
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request); err != nil {
		panic(err)
	}
	if _, err := in.Write(buffer.Bytes()); err != nil {
		panic(err)
	}
	line, err := out.ReadBytes('\n')
	if err != nil {
		panic(fmt.Errorf("the server has ended: %w", err))
	}
	reply := Reply{}
	if err := json.Unmarshal(line, &reply); err != nil {
		panic(fmt.Errorf("reply %s: %w", line, err))
	}
	return reply
}
