package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sshserver"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

func newSSH() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ssh SANDBOX [SSH-ARGUMENT...]",
		Short:   "Open an SSH connection to a sandbox",
		GroupID: groupWork,
		Long: `Starts this machine's ssh for a sandbox, with whatever arguments of ssh follow: options
such as -L, and a command. No port is opened and no network is used: ssh speaks over
the sandbox's one channel, through the daemon, with keys made for this sandbox.

What it starts is judged by the policy's rules and recorded, and alarms are told on stderr,
as with "cofferdam exec".
-L reaches ports of the sandbox, if the policy publishes them or says nothing of it.
-R, -A and -X are refused: nothing leads from a sandbox to here. The user is the
sandbox's own; "-l root" is root inside.

For scp, sftp, rsync and editors, "cofferdam ssh-config" writes what they need. scp and
sftp need a template with sftp-server, as debian and dev are.`,
		Example: `  cofferdam ssh sb4f1c
  cofferdam ssh sb4f1c python3 -V
  cofferdam ssh sb4f1c -N -L 8000:localhost:8000`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name a sandbox, as in: cofferdam ssh sb4f1c")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			args = withoutDashes(args)
			return openSSH(cmd.Context(), args[0], args[1:])
		},
		ValidArgsFunction: completeFirst(completeSandboxes),
	}
	cmd.Flags().SetInterspersed(false) // ssh's own flags are ssh's
	return cmd
}

func newSSHConfig() *cobra.Command {
	return &cobra.Command{
		Use:     "ssh-config SANDBOX...",
		Short:   "Write what SSH clients need to reach a sandbox",
		GroupID: groupWork,
		Long: `Writes a block of an ssh_config for each sandbox. With it ssh, scp, sftp, rsync and the
remote modes of editors know the sandbox as the host SANDBOX.cofferdam. They start
"cofferdam ssh-proxy" and speak with that; no port is opened.

The keys are made for the sandbox when they are first needed, and are kept, for you
alone, below the state directory until the sandbox is gone.`,
		Example: `  cofferdam ssh-config sb4f1c >sb4f1c.conf
  scp -F sb4f1c.conf notes.txt sb4f1c.cofferdam:
  cofferdam ssh-config sb4f1c >>~/.ssh/config`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name a sandbox, as in: cofferdam ssh-config sb4f1c")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for i, sandbox := range args {
				keys, _, err := sshKeys(cmd.Context(), sandbox)
				if err != nil {
					return err
				}
				text, err := sshSettings(cmd.Context(), keys, sandbox)
				if err != nil {
					return err
				}
				if i > 0 {
					fmt.Println()
				}
				if _, err := fmt.Print(text); err != nil {
					return err
				}
			}
			return nil
		},
		ValidArgsFunction: completeSandboxes,
	}
}

func newSSHProxy() *cobra.Command {
	return &cobra.Command{
		Use:     "ssh-proxy SANDBOX",
		Short:   "Be the SSH server of a sandbox, on stdin and stdout",
		GroupID: groupWork,
		Long: `What ssh starts by the ProxyCommand of "cofferdam ssh-config". It speaks SSH on stdin and
stdout, and lets in who has the sandbox's key.`,
		Example: "  ssh -o 'ProxyCommand cofferdam ssh-proxy sb4f1c' sb4f1c.cofferdam",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, c, err := sshKeys(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			server := &sshserver.Server{Sandbox: newSSHSandbox(c, args[0]), Keys: keys, Version: sshVersion()}
			return server.Serve(cmd.Context(), sshserver.Stdio(os.Stdin, os.Stdout))
		},
		ValidArgsFunction: completeFirst(completeSandboxes),
	}
}

// openSSH becomes ssh.
func openSSH(ctx context.Context, sandbox string, args []string) error {
	trees := agentTrees()
	program := executable.LookPath("ssh", os.Environ(), trees)
	if program == "" {
		return fault.New(fault.ErrUnavailable, "there is no ssh on this machine: install the package openssh-client, or use cofferdam shell %s", sandbox)
	}
	keys, _, err := sshKeys(ctx, sandbox)
	if err != nil {
		return err
	}
	proxy, err := sshProxy(ctx, sandbox)
	if err != nil {
		return err
	}
	settings, err := keys.WriteSettings(proxy)
	if err != nil {
		return fmt.Errorf("write the settings for ssh: %w", err)
	}
	argv := append([]string{"ssh", "-F", settings, sshserver.Alias(sandbox)}, args...)
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, argv, executable.Environment(os.Environ(), trees)))
}

// sshKeys are a sandbox's, if it is there; keys of those that are gone are removed.
func sshKeys(ctx context.Context, sandbox string) (sshserver.Keys, *client.Client, error) {
	var none sshserver.Keys
	c, err := connectDaemon(ctx)
	if err != nil {
		return none, nil, err
	}
	boxes, err := c.Sandboxes(ctx)
	if err != nil {
		return none, nil, err
	}
	all, err := sshFolder(ctx)
	if err != nil {
		return none, nil, err
	}
	var living []string
	for _, b := range boxes {
		living = append(living, b.ID)
	}
	if _, err := c.Sandbox(ctx, sandbox); err != nil {
		return none, nil, err
	}
	keys, err := sshserver.KeysIn(all, sandbox, append(living, sandbox))
	return keys, c, err
}

// sshFolder is where the keys of one daemon's sandboxes are: nobody else's may have the
// same ids.
func sshFolder(ctx context.Context) (string, error) {
	paths, err := config.DefaultPaths()
	if err != nil {
		return "", err
	}
	daemon := "here"
	if r, _ := ctx.Value(remoteKey{}).(remote); r.host != "" {
		sum := sha256.Sum256([]byte(r.host))
		daemon = hex.EncodeToString(sum[:8])
	}
	return filepath.Join(paths.State, "ssh", daemon), nil
}

// sshProxy is the command that ssh starts to reach a sandbox.
func sshProxy(ctx context.Context, sandbox string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := []string{self, "ssh-proxy", sandbox}
	r, _ := ctx.Value(remoteKey{}).(remote)
	for _, f := range []struct{ flag, value string }{{"--host", r.host}, {"--token-file", r.tokenFile}, {"--ca", r.ca}} {
		if f.value == "" {
			continue
		}
		if f.flag != "--host" {
			if f.value, err = filepath.Abs(f.value); err != nil {
				return nil, err
			}
		}
		argv = append(argv, f.flag, f.value)
	}
	return argv, nil
}

func sshSettings(ctx context.Context, keys sshserver.Keys, sandbox string) (string, error) {
	proxy, err := sshProxy(ctx, sandbox)
	if err != nil {
		return "", err
	}
	return keys.Settings(proxy)
}
