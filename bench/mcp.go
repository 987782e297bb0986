package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	mcpRounds = 200
	mcpRatio  = 1.5 // of the same by the Go client
)

// measureMCP takes turns between an agent's call of run_command, over the pipes of `cofferdam
// mcp`, and the same command by the Go client, which that uses, too.
func measureMCP(ctx context.Context, b *bench) (err error) {
	box, err := b.sandbox(ctx, closedPolicy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.daemon.client.DestroySandbox(ctx, box.ID)) }()
	document := filepath.Join(b.dir, "mcp.yaml")
	if err := os.WriteFile(document, []byte(closedPolicy), 0o600); err != nil {
		return err
	}
	program := exec.Command(filepath.Join(b.opts.bin, "cofferdam"), "mcp", "--template", "debian", "--policy", document) // the session's end is its own
	program.Env = append(os.Environ(), b.daemon.environment()...)
	agent := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := agent.Connect(ctx, &mcp.CommandTransport{Command: program}, nil)
	if err != nil {
		return fmt.Errorf("start cofferdam mcp: %w", err)
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	var first, asked, direct sample
	n := b.rounds(mcpRounds)
	for i := range n + 1 {
		b.progress.round("mcp", i, n)
		call := stopwatch(func() { err = agentRuns(ctx, session, "/bin/true") })
		if err != nil {
			return err
		}
		same := stopwatch(func() { err = b.command(ctx, box.ID, "/bin/true") })
		if err != nil {
			return err
		}
		if i == 0 { // it makes the sandbox
			first.add(call)
			continue
		}
		asked.add(call)
		direct.add(same)
	}
	b.table.add(figure("MCP run_command /bin/true", unitTime, asked).beside("the same by the Go client", direct).
		target(fmt.Sprintf("<= %.1f x", mcpRatio), asked.median() <= mcpRatio*direct.median()))
	b.table.add(figure("  the first call, which makes the sandbox", unitTime, first))
	return nil
}

// agentRuns has a tool run a command.
func agentRuns(ctx context.Context, session *mcp.ClientSession, argv ...string) error {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": argv}})
	if err != nil {
		return err
	}
	var out struct {
		Code int `json:"exit_code"`
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if result.IsError || !ok || json.Unmarshal([]byte(text.Text), &out) != nil || out.Code != 0 {
		return fmt.Errorf("run_command gave %+v", result.Content)
	}
	return nil
}
