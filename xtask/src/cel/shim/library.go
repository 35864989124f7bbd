// Package windlassenv stands for cel-go's environments in tests of Kubernetes' libraries.
package windlassenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/internal/windlass"
)

// Env is an environment with all of Kubernetes' libraries.
type Env struct{}

// Ast is a compiled expression.
type Ast struct{ reply windlass.Reply }

// Program is a compiled expression that can be evaluated.
type Program struct{ ast *Ast }

// Details has the cost of an evaluation.
type Details struct{ cost uint64 }

// ActualCost returns the cost.
func (d *Details) ActualCost() *uint64 { return &d.cost }

// NewEnv returns the environment, whatever the options are.
func NewEnv(...any) (*Env, error) { return &Env{}, nil }

// Extend returns the environment.
func (e *Env) Extend(...any) (*Env, error) { return e, nil }

// Compile compiles an expression.
func (e *Env) Compile(expression string) (*Ast, *cel.Issues) {
	reply := windlass.Call("compile", windlass.Object{"expression": expression, "authorizer": true})
	reported := common.NewErrors(common.NewTextSource(expression))
	for _, issue := range reply.Issues {
		reported.ReportErrorString(common.NewLocation(issue.Line, issue.Column), issue.Message)
	}
	return &Ast{reply: reply}, cel.NewIssues(reported)
}

// EstimateCost returns the estimated cost.
func (e *Env) EstimateCost(ast *Ast, _ any) (checker.CostEstimate, error) {
	return checker.CostEstimate{Min: windlass.Number(ast.reply.Min), Max: windlass.Number(ast.reply.Max)}, nil
}

// Program returns the program of an expression.
func (e *Env) Program(ast *Ast, _ ...any) (*Program, error) {
	if ast.reply.Failed != "" {
		return nil, errors.New(ast.reply.Failed)
	}
	return &Program{ast: ast}, nil
}

// Eval evaluates an expression.
func (p *Program) Eval(any) (ref.Val, *Details, error) {
	reply := windlass.Call("eval", windlass.Object{"id": p.ast.reply.ID})
	details := &Details{cost: windlass.Number(reply.Cost)}
	if reply.Error != "" {
		return nil, details, errors.New(reply.Error)
	}
	return value(reply.Value), details, nil
}

// AstToCheckedExpr does nothing.
func AstToCheckedExpr(*Ast) (any, error) { return nil, nil }

func value(raw json.RawMessage) ref.Val {
	var typed struct {
		T string
		V json.RawMessage
	}
	read(raw, &typed)
	switch typed.T {
	case "list":
		items := []json.RawMessage{}
		read(typed.V, &items)
		values := make([]ref.Val, len(items))
		for i, item := range items {
			values[i] = value(item)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, values)
	case "optional_type":
		if string(typed.V) == "null" {
			return types.OptionalNone
		}
		return types.OptionalOf(value(typed.V))
	}
	text := ""
	read(typed.V, &text)
	return scalar(typed.T, text)
}

func scalar(name, text string) ref.Val {
	switch name {
	case "bool":
		return types.Bool(text == "true")
	case "int":
		number, _ := strconv.ParseInt(text, 10, 64)
		return types.Int(number)
	case "uint":
		number, _ := strconv.ParseUint(text, 10, 64)
		return types.Uint(number)
	case "double":
		number, _ := strconv.ParseFloat(text, 64)
		return types.Double(number)
	case "string":
		return types.String(text)
	case "null_type":
		return types.NullValue
	case "google.protobuf.Duration":
		duration, _ := time.ParseDuration(text)
		return types.Duration{Duration: duration}
	case "net.IP":
		return apiservercel.IP{Addr: netip.MustParseAddr(text)}
	case "net.CIDR":
		return apiservercel.CIDR{Prefix: netip.MustParsePrefix(text)}
	case "kubernetes.Quantity":
		quantity := resource.MustParse(text)
		return apiservercel.Quantity{Quantity: &quantity}
	case "kubernetes.Semver":
		return apiservercel.Semver{Version: semver.MustParse(text)}
	case "type":
		return types.NewObjectType(text)
	default:
		return types.String(name + " " + text)
	}
}

func read(raw json.RawMessage, into any) {
	if err := json.Unmarshal(raw, into); err != nil {
		panic(fmt.Errorf("value %s: %w", raw, err))
	}
}
