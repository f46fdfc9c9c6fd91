//! What every C front needs at the boundary: no panic crosses it, pointers are checked.
