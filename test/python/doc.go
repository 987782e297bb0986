// Package python runs the tests of the Python package, which is in the folder python: its
// types, its client against a daemon of the built binary, the toolkit's provider beside two
// releases of the toolkit, the toolkit's own tests, and an installation from the wheel.
package python
