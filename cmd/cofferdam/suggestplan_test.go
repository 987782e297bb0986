package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
)

// What is resolved is what the run's commands asked for, in their words.
func TestInstallsOf(t *testing.T) {
	t.Parallel()
	got := installsOf([]api.SuggestedRoot{
		{Ecosystem: "python", Name: "requests", Asked: "requests[socks]>=2", Version: "2.32.3"},
		{Ecosystem: "node", Name: "express"},
		{Ecosystem: "go", Name: "x.example/m"},
		{Ecosystem: "python", Name: "idna", Version: "3.7"},
		{Ecosystem: "rust", Name: "serde"},
		{Ecosystem: "go", Name: "x.example/n", Asked: "x.example/n/cmd@v1.2.3"},
	})
	want := [][]string{
		{"pip", "install", "requests[socks]>=2", "idna==3.7"}, {"npm", "install", "express"}, {"go", "install", "x.example/m@latest", "x.example/n/cmd@v1.2.3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
