# --layout: how memories of many processes lie on a GPU. The CPU has each in one piece, whatever is asked for.
$ cat > x.wat <<'END'
> (module (memory 1) (func (export "f") (param i32) (result i32)
>   (i32.store (i32.const 8) (local.get 0)) (i32.load (i32.const 8))))
> END
$ for l in linear interleaved auto; do gpu-run --device cpu --layout $l --instances 3 --each --invoke f x.wat {}; done
0	0
1	1
2	2
0	0
1	1
2	2
0	0
1	1
2	2
$ gpu-run --device cpu --layout interleaved --instances 2 --report r.json --invoke f x.wat 1; grep -o '"layout": "[a-z]*"' r.json
2	1
"layout": "linear"
$ gpu-run --device cpu --layout auto --instances 2 --report r.json --invoke f x.wat 1; grep -o '"layout_choice": {.*}' r.json
2	1
"layout_choice": {"reason": "untried", "linear_per_second": null, "interleaved_per_second": null}
$ gpu-run --layout rows --instances 2 --invoke f x.wat 1
gpu-run: unknown layout "rows"; --layout takes linear, interleaved or auto
[2]
