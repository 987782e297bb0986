package door

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Tools lists the functions of the host that a sandbox may call, and judges, records and makes calls of them.
type Tools interface {
	// Tools are the functions of the host that a sandbox may call.
	Tools(ctx context.Context, sandbox string) ([]Tool, error)

	// CallTool judges a call and records that it begins, durably, before it makes it; how
	// it ended is on record when it returns. A call whose ctx ends is ended, and one whose ctx has ended is
	// judged and recorded, and not made.
	CallTool(ctx context.Context, ask ToolAsk) (ToolAnswer, error)
}

// Tool is a function of the host that a sandbox may call.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Arguments   string `json:"arguments"` // their JSON Schema
}

// ToolAsk is a call of a tool. All of it is the guest's.
type ToolAsk struct {
	Sandbox   string `json:"sandbox"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"` // as they came
	// Malformed is why what came is no call, in the gateway's words: it is only recorded.
	Malformed string `json:"malformed,omitempty"`
}

// ToolOutcome is what became of a call.
type ToolOutcome string

// The outcomes.
const (
	ToolAnswered ToolOutcome = "answered" // Result has the answer
	ToolFailed   ToolOutcome = "failed"   // it was called, and has none
	ToolRefused  ToolOutcome = "refused"  // by the policy, or by a person
	ToolHeld     ToolOutcome = "held"     // a person has to answer first, and has not
	ToolUnknown  ToolOutcome = "unknown"  // the policy has it, and the daemon's configuration does not
	ToolInvalid  ToolOutcome = "invalid"  // its arguments are none that it takes
	ToolBusy     ToolOutcome = "busy"     // too many calls at a time, or in a second
)

// ToolAnswer is the answer to a call.
type ToolAnswer struct {
	Outcome   ToolOutcome    `json:"outcome"`
	Result    jsontext.Value `json:"result,omitempty"`
	Reason    string         `json:"reason,omitempty"` // why there is no result; for the guest
	RequestID string         `json:"request_id,omitempty"`
	// Approval is the request in the queue that the call waits as, or whose answer decided.
	Approval string `json:"approval,omitempty"`
}

// The rules of calls that are refused for what they are, and not by the policy.
const (
	RuleToolUnknown   = "tool.unknown"
	RuleToolArguments = "tool.arguments"
	RuleToolQuota     = "quota.tool_calls"
	RuleToolForm      = "tool.form" // it is no call
	RuleToolLeft      = "tool.left" // whoever called it went before it was made
	RuleToolUnjudged  = "tool.unjudged"
)

// RuleCrowded is of what a sandbox asks while as much as it may have under way is.
const RuleCrowded = "quota.questions_at_once"

// RuleUnheard is of what a client had said that has hung up, and that did not come in time to be judged.
const RuleUnheard = "network.unheard"

// Tools implements Door.
func (c *Client) Tools(ctx context.Context, sandbox string) ([]Tool, error) {
	return askFor[[]Tool](ctx, c, sandbox, callTools, toolsCall{sandbox})
}

// CallTool implements Door. A tool may take its time, and a person more, so its call is none
// of those that others wait for.
func (c *Client) CallTool(ctx context.Context, ask ToolAsk) (ToolAnswer, error) {
	return askFor[ToolAnswer](ctx, c, ask.Sandbox, callCallTool, ask)
}

// Crowded is how n connections or questions of a sandbox failed that were refused unheard.
func Crowded(sandbox string, n int) Failure {
	return Failure{
		Sandbox: sandbox, ResolvedBy: policy.ByCanonical, Rule: RuleCrowded,
		Reason: fmt.Sprintf("%d connections or questions were refused unheard: the sandbox had as many under way, or had made as many in a second, as it may, or they did not say in time what they were for", n),
	}
}
