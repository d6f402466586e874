module fangcheng.example/player

go 1.19
