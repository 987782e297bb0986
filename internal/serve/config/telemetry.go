package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
)

// Telemetry is what leaves the daemon about itself. Metrics are on the admin
// socket without it; traces are off unless a place for them is named.
type Telemetry struct {
	Traces Traces `yaml:"traces"` // where spans go; nowhere if neither place is named
}

// Traces says where spans go.
type Traces struct {
	// Endpoint is the http or https URL of an OTLP receiver; one without a path
	// gets /v1/traces. File is a path that they are appended to as JSON lines. At
	// most one of both.
	Endpoint string `yaml:"endpoint"`
	File     string `yaml:"file"`
	// Headers go with each request to the endpoint, such as its credentials.
	Headers map[string]string `yaml:"headers"`
	// Sample is the share of traces that are kept, 0 to 1; all if it is not set. One
	// that a client began is kept if the client keeps it.
	Sample *float64 `yaml:"sample"`
}

// Wanted reports whether spans go anywhere.
func (t Traces) Wanted() bool { return t.Endpoint != "" || t.File != "" }

// Ratio is Sample with its default.
func (t Traces) Ratio() float64 {
	if t.Sample == nil {
		return 1
	}
	return *t.Sample
}

// URL is the endpoint with its path.
func (t Traces) URL() string {
	u, err := url.Parse(t.Endpoint)
	if err != nil || t.Endpoint == "" {
		return ""
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String()
}

func (t Telemetry) checkKeys() error {
	traces := t.Traces
	if traces.Endpoint != "" {
		u, err := url.Parse(traces.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return errors.New(".traces.endpoint is no http or https URL") // not shown: it may hold a password
		}
	}
	switch {
	case traces.Endpoint != "" && traces.File != "":
		return errors.New(".traces has both an endpoint and a file; spans go to one place")
	case traces.File != "" && !filepath.IsAbs(traces.File):
		return fmt.Errorf(".traces.file is %q; it must be an absolute path", traces.File)
	case !traces.Wanted() && (traces.Sample != nil || len(traces.Headers) > 0):
		return errors.New(".traces has settings and neither an endpoint nor a file")
	case traces.Ratio() < 0 || traces.Ratio() > 1 || traces.Ratio() != traces.Ratio():
		return fmt.Errorf(".traces.sample is %v; it must be between 0 and 1", traces.Ratio())
	}
	return nil
}

// Log is how the daemon writes what happens to it.
type Log struct {
	Level  string `yaml:"level"`  // debug, info (the default), warn or error
	Format string `yaml:"format"` // text (the default) or json
}

func (l Log) checkKeys() error {
	switch l.Level {
	case "", "debug", "info", "warn", "error":
	default:
		return fmt.Errorf(".level is %q; it must be debug, info, warn or error", l.Level)
	}
	switch l.Format {
	case "", "text", "json":
	default:
		return fmt.Errorf(".format is %q; it must be text or json", l.Format)
	}
	return nil
}
