package cel

import (
	"context"
	"errors"
	"strconv"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/internal/windlass"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// windlassProgram stands for a program of windlass-cel.
type windlassProgram struct {
	id       int
	limit    uint64
	optional bool
	self     any
	oldSelf  any
}

func (p *windlassProgram) Eval(any) (ref.Val, *celgo.EvalDetails, error) {
	panic("not used")
}

func (p *windlassProgram) ContextEval(context.Context, any) (ref.Val, *celgo.EvalDetails, error) {
	panic("not used")
}

type windlassDetails struct{ cost uint64 }

func (d *windlassDetails) ActualCost() *uint64 { return &d.cost }

func windlassBind(program celgo.Program, self, oldSelf any, optional bool) celgo.Program {
	if p, ok := program.(*windlassProgram); ok {
		bound := *p
		bound.self, bound.oldSelf, bound.optional = self, oldSelf, optional
		return &bound
	}
	return program
}

func windlassEval(program celgo.Program) (ref.Val, *windlassDetails, error) {
	p := program.(*windlassProgram)
	request := windlass.Object{"id": p.id, "limit": strconv.FormatUint(p.limit, 10), "optional": p.optional}
	request["self"] = windlass.Encode(p.self)
	if p.oldSelf != nil {
		request["oldSelf"] = windlass.Encode(p.oldSelf)
	}
	reply := windlass.Call("eval", request)
	details := &windlassDetails{cost: windlass.Number(reply.Cost)}
	switch {
	case reply.Error != "":
		return nil, details, errors.New(reply.Error)
	case reply.Type == "bool":
		return types.Bool(reply.Bool), details, nil
	default:
		return types.String(reply.Text), details, nil
	}
}

func windlassCompile(s *schema.Structural, rule apiextensions.ValidationRule, expression string, estimator *library.CostEstimator) windlass.Reply {
	root := estimator.SizeEstimator.(*sizeEstimator).root
	_, hasVersion := root.Fields["apiVersion"]
	_, hasKind := root.Fields["kind"]
	_, hasMetadata := root.Fields["metadata"]
	return windlass.Call("compile", windlass.Object{
		"schema":     s.ToKubeOpenAPI(),
		"resource":   hasVersion && hasKind && hasMetadata,
		"optional":   rule.OptionalOldSelf != nil && *rule.OptionalOldSelf,
		"expression": expression,
	})
}

func compileRule(s *schema.Structural, rule apiextensions.ValidationRule, envSet *environment.EnvSet, envLoader EnvLoader, estimator *library.CostEstimator, maxCardinality uint64, perCallLimit uint64) (result CompilationResult) {
	invalid := func(detail string) *apiservercel.Error {
		return &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: detail}
	}
	if len(strings.TrimSpace(rule.Rule)) == 0 {
		return
	}
	envLoader.RuleEnv(envSet, rule.Rule)
	reply := windlassCompile(s, rule, rule.Rule, estimator)
	switch {
	case reply.Error != "":
		result.Error = invalid("compilation failed: " + reply.Error)
		return
	case reply.Output != "bool":
		result.Error = invalid("cel expression must evaluate to a bool")
		return
	case reply.Failed != "":
		result.Error = invalid("program instantiation failed: " + reply.Failed)
		return
	}
	result.UsesOldSelf = reply.UsesOldSelf
	result.MaxCost = windlass.Number(reply.Max)
	result.MaxCardinality = windlass.Number(reply.Cardinality)
	result.Program = &windlassProgram{id: reply.ID, limit: perCallLimit}
	if rule.MessageExpression != "" {
		envLoader.MessageExpressionEnv(envSet, rule.MessageExpression)
		reply := windlassCompile(s, rule, rule.MessageExpression, estimator)
		switch {
		case reply.Error != "":
			result.MessageExpressionError = invalid("messageExpression compilation failed: " + reply.Error)
			return
		case reply.Output != "string":
			result.MessageExpressionError = invalid("messageExpression must evaluate to a string")
			return
		case reply.Failed != "":
			result.MessageExpressionError = invalid("messageExpression instantiation failed: " + reply.Failed)
			return
		}
		result.MessageExpression = &windlassProgram{id: reply.ID, limit: perCallLimit}
		result.MessageExpressionMaxCost = windlass.Number(reply.Max)
	}
	if rule.FieldPath != "" {
		validFieldPath, _, err := ValidFieldPath(rule.FieldPath, s)
		if err == nil {
			result.NormalizedRuleFieldPath = validFieldPath.String()
		}
	}
	return
}
