// Package windlass lets the Go tests of other projects call our code.
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
)

// Object is a request or a part of one.
type Object map[string]any

// Float is a number that stays a float in JSON, even if it is whole.
type Float float64

// MarshalJSON writes the number with a fraction or an exponent.
func (f Float) MarshalJSON() ([]byte, error) {
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
	case map[any]any:
		out := make(map[string]any, len(value))
		for name, member := range value {
			if name, ok := name.(string); ok {
				out[name] = Encode(member)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = Encode(item)
		}
		return out
	case float64:
		return Float(value)
	case float32:
		return Float(value)
	default:
		return value
	}
}

// pipe is a running program of ours that reads and writes one JSON object a line.
type pipe struct {
	in  io.Writer
	out *bufio.Reader
}

// open starts the program that a variable of the environment names.
func open(variable string) *pipe {
	command := exec.Command(os.Getenv(variable))
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := command.Start(); err != nil {
		panic(fmt.Errorf("%s: %w", variable, err))
	}
	return &pipe{in: in, out: bufio.NewReaderSize(out, 1<<16)}
}

func (p *pipe) send(request any) {
	buffer := bytes.Buffer{}
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request); err != nil {
		panic(err)
	}
	if _, err := p.in.Write(buffer.Bytes()); err != nil {
		panic(err)
	}
}

func (p *pipe) receive(reply any) {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		panic(fmt.Errorf("the server has ended: %w", err))
	}
	if err := json.Unmarshal(line, reply); err != nil {
		panic(fmt.Errorf("reply %s: %w", line, err))
	}
}
