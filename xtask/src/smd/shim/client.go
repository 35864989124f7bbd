package windlass

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
)

// Decode reads a value as the YAML reader of the tests does.
func Decode(raw json.RawMessage) any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(fmt.Errorf("reply %s: %w", raw, err))
	}
	return numbers(value)
}

func numbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			value[name] = numbers(member)
		}
		return value
	case []any:
		for i, item := range value {
			value[i] = numbers(item)
		}
		return value
	case json.Number:
		if number, err := strconv.Atoi(value.String()); err == nil {
			return number
		}
		number, err := value.Float64()
		if err != nil {
			panic(err)
		}
		return number
	default:
		return value
	}
}

// Reply is what the server answered.
type Reply map[string]json.RawMessage

// Bool returns the result of a question.
func (r Reply) Bool() bool {
	return string(r["result"]) == "true"
}

// Text returns the result as a text.
func (r Reply) Text() string {
	var text string
	if err := json.Unmarshal(r["result"], &text); err != nil {
		panic(err)
	}
	return text
}

// Number returns the result as a number.
func (r Reply) Number() int {
	number, err := strconv.Atoi(string(r["result"]))
	if err != nil {
		panic(err)
	}
	return number
}

// server is a running `smd` example of windlass-schema. A request may start others, so that there are as many as calls are nested.
type server struct {
	*pipe
	known map[int]bool
}

var (
	lock sync.Mutex
	idle []*server
)

func acquire() *server {
	lock.Lock()
	defer lock.Unlock()
	if last := len(idle) - 1; last >= 0 {
		found := idle[last]
		idle = idle[:last]
		return found
	}
	return &server{pipe: open("WINDLASS_SMD_SERVER"), known: map[int]bool{}}
}

func release(s *server) {
	lock.Lock()
	defer lock.Unlock()
	idle = append(idle, s)
}

func (s *server) reply() Reply {
	reply := Reply{}
	s.receive(&reply)
	return reply
}

// Ask sends a request that cannot fail.
func Ask(operation string, request Object) Reply {
	reply, err := Call(operation, request, nil)
	if err != nil {
		panic(fmt.Errorf("%s: %w", operation, err))
	}
	return reply
}

// Call sends a request. The server may ask to convert objects before it replies.
func Call(operation string, request Object, convert func(json.RawMessage) any) (Reply, error) {
	count(operation)
	s := acquire()
	defer release(s)
	used := []int{}
	if id, ok := request["schema"].(int); ok {
		used = append(used, id)
	}
	if versions, ok := request["schemas"].(Object); ok {
		for _, named := range versions {
			used = append(used, named.(Object)["schema"].(int))
		}
	}
	for _, id := range used {
		if s.known[id] {
			continue
		}
		s.send(Object{"op": "schema", "id": id, "definitions": definitionsOf(id)})
		if reply := s.reply(); reply["error"] != nil {
			return nil, fmt.Errorf("schema: %s", reply["error"])
		}
		s.known[id] = true
	}
	request["op"] = operation
	s.send(request)
	for {
		reply := s.reply()
		if asked, ok := reply["convert"]; ok {
			s.send(convert(asked))
			continue
		}
		if failed, ok := reply["error"]; ok {
			var text string
			if err := json.Unmarshal(failed, &text); err != nil {
				panic(err)
			}
			return nil, errors.New(text)
		}
		return reply, nil
	}
}

// count notes a call in the file that the environment names, a byte each.
func count(operation string) {
	file := os.Getenv("WINDLASS_SMD_CALLS")
	if file == "" {
		return
	}
	lock.Lock()
	defer lock.Unlock()
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer out.Close()
	fmt.Fprintln(out, operation)
}
