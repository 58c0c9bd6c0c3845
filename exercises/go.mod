module github.com/flyball-dev/flyball/exercises

go 1.26.0
