package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon"
	"github.com/cofferdam-dev/cofferdam/internal/serve/doctor"
)

// examine is `serve --check`: what a daemon would find, and whether it could serve.
// It changes nothing.
func (f serveFlags) examine(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	paths, err := config.DefaultPaths()
	if err != nil {
		return err
	}
	cfg, from, err := f.config(paths)
	found := from.Path + " is right"
	if from.SHA256 == "" {
		found = "there is no " + from.Path + ": every key has its default"
	}
	report := doctor.Report{Checks: []doctor.Check{verdictOf("configuration", err, "%s", found)}}
	if err == nil {
		report.Checks = append(report.Checks, checkListen(ctx, cfg.Listen, paths))
		report.Checks = append(report.Checks, checkPolicies(paths)...)
		report.Checks = append(report.Checks, checkInstallation(paths, cfg, from)...)
		host, err := examine(ctx)
		if err != nil {
			return err
		}
		report.Checks = append(report.Checks, host.Checks...)
	}
	return tellReport(report, f.json)
}

// verdictOf is a check that failed with an error, or else a sentence.
func verdictOf(name string, err error, format string, args ...any) doctor.Check {
	if err != nil {
		return doctor.Check{Name: name, Status: doctor.Fail, Sentence: err.Error()}
	}
	return doctor.Check{Name: name, Status: doctor.OK, Sentence: fmt.Sprintf(format, args...)}
}

// checkInstallation checks what a daemon looks at before it starts.
func checkInstallation(paths config.Paths, cfg config.Config, from config.Source) []doctor.Check {
	var checks []doctor.Check
	for _, found := range daemon.Examine(paths, cfg) {
		status := doctor.Fail
		if found.Passing {
			status = doctor.Warn
		}
		checks = append(checks, doctor.Check{Name: found.Name, Status: status, Sentence: from.Place(found.Err).Error()})
	}
	if err := intactLog(paths, cfg); err != nil {
		checks = append(checks, verdictOf("audit log", err, ""))
	}
	return checks
}

// intactLog compares the log with what was kept of it elsewhere.
func intactLog(paths config.Paths, cfg config.Config) error {
	against, err := daemon.RolledBack(paths, cfg.Audit)
	if err == nil && len(against) > 0 {
		err = daemon.ErrRolledBack(paths, strings.Join(against, "; "))
	}
	return err
}

// checkListen tries the address, unless the daemon that runs has it.
func checkListen(ctx context.Context, l config.Listen, paths config.Paths) doctor.Check {
	const name = "listen"
	if !l.Wanted() {
		return verdictOf(name, nil, "on the Unix socket only; --listen, or listen in %s, takes clients with tokens over the network", paths.File())
	}
	for _, file := range []string{l.TLS.CertFile, l.TLS.KeyFile} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return verdictOf(name, fmt.Errorf("the file %s of listen.tls %s", file, because(err)), "")
		}
	}
	if l.TLS.CertFile != "" && l.TLS.KeyFile != "" {
		if _, err := tls.LoadX509KeyPair(l.TLS.CertFile, l.TLS.KeyFile); err != nil {
			return verdictOf(name, fmt.Errorf("the files of listen.tls can't be used: %w", err), "")
		}
	}
	running, err := client.Own(paths.DaemonSocket()).Version(ctx)
	if err == nil && running.URL == l.URL() {
		return verdictOf(name, nil, "at %s, as the daemon that runs does", l.URL())
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.Address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return verdictOf(name, fmt.Errorf("another program listens on %s; choose another port", l.Address), "")
	case err != nil:
		return verdictOf(name, fmt.Errorf("can't listen on %s: %w", l.Address, err), "")
	}
	_ = listener.Close()
	return verdictOf(name, nil, "at %s", l.URL())
}

// checkPolicies reads the named policies as the daemon would.
func checkPolicies(paths config.Paths) []doctor.Check {
	const name = "named policies"
	dir := filepath.Join(paths.Policies(), "named")
	if _, err := os.Stat(dir); err != nil {
		return []doctor.Check{verdictOf(name, nil, "none were put; tokens have the built-in one, which allows no package")}
	}
	store, err := namedpolicy.Open(dir, func(string) []string { return nil })
	if err != nil {
		return []doctor.Check{verdictOf(name, err, "")}
	}
	var checks []doctor.Check
	for _, broken := range slices.Sorted(maps.Keys(store.Broken())) {
		checks = append(checks, doctor.Check{
			Name: name, Status: doctor.Fail, Sentence: store.Broken()[broken].Error(), HowToFix: "cofferdam policy put " + broken + " FILE, or cofferdam policy rm " + broken,
		})
	}
	all, err := store.List()
	if err != nil {
		return append(checks, verdictOf(name, err, ""))
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return append(checks, verdictOf(name, nil, "%s", strings.Join(names, ", ")))
}
