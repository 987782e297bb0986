module github.com/cofferdam-dev/cofferdam

go 1.26.0
