module logsum

go 1.21
