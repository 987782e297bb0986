// Functions without a body, in forked.go, need a file of assembly in their package.
