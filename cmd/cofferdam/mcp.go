package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/mcp"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newMCP() *cobra.Command {
	var flags runFlags
	var approvalURL string
	cmd := &cobra.Command{
		Use:     "mcp",
		Short:   "Give sandboxes to an agent, over the Model Context Protocol",
		GroupID: groupWork,
		Long: `Speaks the Model Context Protocol on stdin and stdout, for a client that starts it: an
agent then has tools that run commands and code, read and write files, plan and install
packages, and ask for an approval. "cofferdam mcp install" writes a client's
configuration.

The sandboxes are made as by "cofferdam run" with the same flags: what the agent may have
is for the flags to say, and nothing of it for the agent. Each client has its own
sandboxes. The first tool that needs one makes it, and they are removed when the client
goes. What a policy leaves to a person waits in the approval queue as usual ("cofferdam
approvals"); the agent can ask, and can't answer.

No daemon needs to run: one is started, as by "cofferdam run". Over the network, a daemon
that listens ("cofferdam serve --listen") speaks the same protocol at its address with
/mcp behind it, to those who show a token.`,
		Example: `  cofferdam mcp install claude
  cofferdam mcp --policy policy.yaml --mount .:/workspace:rw
  cofferdam mcp --host https://sandboxes.example:7433 --token-file token`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveAgent(cmd, flags, approvalURL)
		},
	}
	flags.registerSandbox(cmd)
	cmd.Flags().StringVar(&approvalURL, "approval-url", "", "page on which a person answers a request, with {request} for its id (default: approvals.url of the configuration)")
	incomplete(cmd, "approval-url")
	cmd.AddCommand(newMCPInstall(), newMCPUninstall())
	return cmd
}

// serveAgent runs `cofferdam mcp` once the flags are parsed. All that can be wrong with them is
// found before the client hears a word.
func serveAgent(cmd *cobra.Command, flags runFlags, approvalURL string) error {
	cwd, err := currentDirectory()
	if err != nil {
		return err
	}
	request, err := flags.sandboxRequest(cwd)
	if err != nil {
		return err
	}
	tellOutside(showing(request.Mounts), ui.NewStderr(os.Stderr).Say)
	if approvalURL, err = approvalPage(approvalURL); err != nil {
		return err
	}
	at := remoteOf(cmd)
	server := mcp.New(mcp.Config{
		Connect: func(ctx context.Context, _ string) (mcp.Backend, error) {
			c, err := connectDaemon(withRemote(ctx, at))
			if err != nil {
				return nil, err
			}
			return mcp.Over(c), nil
		},
		Sandbox: request, ApprovalURL: approvalURL, Installers: all.Installers(), Version: version,
	})
	if ui.IsTerminal(os.Stdin) {
		ui.NewStderr(os.Stderr).Say("this speaks the Model Context Protocol with the program that starts it, and not with a person; to have an agent start it: cofferdam mcp install CLIENT (Ctrl-C ends it)")
	}
	// A client that is killed leaves a broken pipe, after which there is still work.
	ctx, stop := interrupted(cmd.Context())
	defer stop()
	if err := server.Run(ctx, mcp.NewStdio(os.Stdin, os.Stdout)); err != nil && ctx.Err() == nil && !errors.Is(err, sdk.ErrConnectionClosed) {
		doing := "speak with the client"
		if _, ok := errors.AsType[*json.SyntaxError](err); ok {
			doing = "the client on stdin does not speak the Model Context Protocol"
		}
		return &exitError{code: exitOurs, err: fmt.Errorf("%s: %w", doing, err)}
	}
	return nil
}

// approvalPage is the address that was given, or that of the configuration.
func approvalPage(given string) (string, error) {
	if err := config.CheckApprovalURL(given); err != nil {
		return "", fault.Invalid("--approval-url%s", err)
	}
	if given != "" {
		return given, nil
	}
	paths, err := config.DefaultPaths()
	if err != nil {
		return "", err
	}
	cfg, _, err := paths.Load()
	return cfg.Approvals.URL, err
}
