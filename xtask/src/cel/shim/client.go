package windlass

import (
	"encoding/json"
	"strconv"
	"sync"
)

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

var (
	lock   sync.Mutex
	server *pipe
)

// Call asks the example `cel` of windlass-cel to compile or to evaluate an expression.
func Call(operation string, request Object) Reply {
	lock.Lock()
	defer lock.Unlock()
	if server == nil {
		server = open("WINDLASS_CEL_SERVER")
	}
	request["op"] = operation
	server.send(request)
	reply := Reply{}
	server.receive(&reply)
	return reply
}
